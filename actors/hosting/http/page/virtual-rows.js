// A long list of which only the rows in sight are in the document, with one tab stop that the arrow keys move.
//
// Rows are objects with an `id`. The row that has the tab stop stays in the document even out of sight, so that focus is never lost; what
// is inserted above does not move what is being looked at.

import { el, reconcile } from "./dom.js";

const BEYOND = 8;

export class VirtualRows {
  // `create(row)` makes an element, `update(element, row)` shows the row in it, `open(row, event)` is a click or Enter; `keys` maps further
  // keys to `(row, index) => handled`.
  constructor(scroller, { rowHeight, create, update, open, keys = {} }) {
    this.scroller = scroller;
    this.rowHeight = rowHeight;
    this.create = create;
    this.update = update;
    this.open = open;
    this.keys = keys;
    this.rows = [];
    this.indexes = new Map();
    this.activeId = null;
    this.sizer = el("div", { class: "sizer", role: "presentation" });
    scroller.append(this.sizer);
    this.listen();
  }

  listen() {
    this.scroller.addEventListener("scroll", () => this.renderSoon(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.pressed(event));
    this.scroller.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => this.renderSoon()).observe(this.scroller);
  }

  setRows(rows) {
    const anchor = this.scroller.scrollTop > 0 ? this.rows[Math.floor(this.scroller.scrollTop / this.rowHeight)] : undefined;
    const anchorAt = anchor && this.indexes.get(anchor.id);
    const activeAt = this.indexes.get(this.activeId) ?? 0;
    this.rows = rows;
    this.indexes = new Map(rows.map((row, index) => [row.id, index]));
    this.keepActive(activeAt);
    this.sizer.style.height = `${rows.length * this.rowHeight}px`;
    this.keepAnchor(anchor, anchorAt);
    this.render();
  }

  keepAnchor(anchor, before) {
    const after = anchor && this.indexes.get(anchor.id);
    if (after !== undefined && after !== before) this.scroller.scrollTop += (after - before) * this.rowHeight;
  }

  keepActive(activeAt) {
    if (this.indexes.has(this.activeId)) return;
    const hadFocus = this.sizer.contains(document.activeElement);
    this.activeId = this.rows[Math.min(activeAt, this.rows.length - 1)]?.id ?? null;
    if (hadFocus) requestAnimationFrame(() => this.focusActive());
  }

  renderSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  render() {
    const items = this.inSight();
    reconcile(this.sizer, items, (row) => row.id, (row) => this.create(row), (element, row) => this.place(element, row));
  }

  inSight() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.rowHeight) - BEYOND);
    const last = Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / this.rowHeight) + BEYOND;
    const items = this.rows.slice(first, last);
    const activeAt = this.indexes.get(this.activeId);
    if (activeAt < first) items.unshift(this.rows[activeAt]);
    if (activeAt >= last) items.push(this.rows[activeAt]);
    return items;
  }

  place(element, row) {
    const top = `translateY(${this.indexes.get(row.id) * this.rowHeight}px)`;
    if (element.style.transform !== top) element.style.transform = top;
    element.tabIndex = row.id === this.activeId ? 0 : -1;
    element.rowId = row.id;
    this.update(element, row);
  }

  activate(index, focus = true) {
    const row = this.rows[Math.max(0, Math.min(index, this.rows.length - 1))];
    if (!row) return;
    this.activeId = row.id;
    this.show(this.indexes.get(row.id));
    this.render();
    if (focus) this.focusActive();
  }

  show(index) {
    const top = index * this.rowHeight;
    const bottom = top + this.rowHeight - this.scroller.clientHeight;
    if (this.scroller.scrollTop > top) this.scroller.scrollTop = top;
    else if (this.scroller.scrollTop < bottom) this.scroller.scrollTop = bottom;
  }

  focusActive() {
    this.elementOf(this.activeId)?.focus({ preventScroll: true });
  }

  elementOf(id) {
    return [...this.sizer.children].find((element) => element.rowId === id);
  }

  clicked(event) {
    const element = event.target.closest("[tabindex]");
    const index = element && this.indexes.get(element.rowId);
    if (index === undefined) return;
    this.activate(index);
    this.open(this.rows[index], event);
  }

  pressed(event) {
    const index = this.indexes.get(this.activeId);
    if (index === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.moved(event.key, index) || this.done(event, index)) event.preventDefault();
  }

  moved(key, index) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
    const goals = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: this.rows.length - 1, PageDown: index + page, PageUp: index - page };
    if (!(key in goals)) return false;
    this.activate(goals[key]);
    return true;
  }

  done(event, index) {
    if (event.key === "Enter" || event.key === " ") {
      this.open(this.rows[index], event);
      return true;
    }
    return this.keys[event.key]?.(this.rows[index], index) ?? false;
  }
}
