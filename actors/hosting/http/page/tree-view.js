// The sessions as a tree.

import { el, glow, setAttribute, setHidden, setText } from "./dom.js";
import { forestOf, looksFor, rowsOf } from "./forest.js";
import { actorMark, icon, setMark } from "./marks.js";
import { actorName, nameOf, plural, shortKey } from "./names.js";
import { setTime, timeElement } from "./times.js";
import { VirtualRows } from "./virtual-rows.js";

const ROW_HEIGHT = 34;
// Beyond so many sessions the tree is collapsed at first.
const EXPANDED_MAX = 60;

export class TreeView {
  constructor(open) {
    this.openSession = open;
    this.model = null;
    this.selected = null;
    this.expansion = new Map();
    this.rows = new VirtualRows(document.getElementById("tree"), {
      rowHeight: ROW_HEIGHT,
      create: () => this.create(),
      update: (element, row) => this.update(element, row),
      open: (row, event) => this.opened(row, event),
      keys: { ArrowRight: (row, index) => this.right(row, index), ArrowLeft: (row) => this.left(row) },
    });
    this.filter = document.getElementById("sessions-filter");
    this.pendingOnly = document.getElementById("sessions-pending");
    this.filter.addEventListener("input", () => this.render());
    this.pendingOnly.addEventListener("change", () => this.render());
    document.getElementById("expand-all").addEventListener("click", () => this.expandAll(true));
    document.getElementById("collapse-all").addEventListener("click", () => this.expandAll(false));
  }

  show(model) {
    this.model = model;
    this.forest = forestOf(model);
    this.render();
  }

  select(id) {
    this.selected = id;
    this.rows.render();
  }

  render() {
    if (!this.model) return;
    const shown = rowsOf(this.forest, (id) => this.isExpanded(id), this.matches(), (session) => this.model.noticesOf(session));
    this.rows.setRows(shown);
    const { sessions, totals, hasMore } = this.model;
    const found = this.matches() ? shown.filter((row) => !row.aside).length : null;
    const total = sessions.length.toLocaleString("en");
    setText(document.getElementById("sessions-count"), found === null ? total : `${found.toLocaleString("en")} of ${total}`);
    setHidden(document.getElementById("sessions-nothing"), shown.length > 0);
    const more = document.getElementById("sessions-more");
    setHidden(more, !hasMore.sessions);
    setText(more, `${total} of ${plural(totals.sessions, "session")}: the recently changed ones, filled up by key.`);
  }

  matches() {
    const looked = looksFor(this.filter.value);
    if (!this.pendingOnly.checked) return looked;
    return (session) => this.model.noticesOf(session) > 0 && (looked === null || looked(session));
  }

  isExpanded(id) {
    return this.expansion.get(id) ?? this.model.sessions.length <= EXPANDED_MAX;
  }

  expandAll(expanded) {
    for (const id of this.forest.nodes.keys()) this.expansion.set(id, expanded);
    this.render();
  }

  expand(row, expanded) {
    this.expansion.set(row.id, expanded);
    this.render();
  }

  opened(row, event) {
    if (event.target.closest?.(".twist") && row.children > 0) this.expand(row, !row.expanded);
    else this.openSession(row.session.sessionKey, row.session.agentId);
  }

  right(row, index) {
    if (row.children === 0) return false;
    if (row.expanded) this.rows.activate(index + 1);
    else this.expand(row, true);
    return true;
  }

  left(row) {
    if (row.expanded) this.expand(row, false);
    else if (row.parent !== null) this.rows.activate(this.rows.indexes.get(row.parent));
    else return false;
    return true;
  }

  create() {
    const element = el(
      "div",
      { role: "treeitem", class: "row session" },
      el("span", { class: "twist" }, icon("chevron")),
      el("span", { class: "name" }, el("bdi", { class: "title" }), el("bdi", { class: "key" })),
      el("span", { class: "running", title: "a run is active" }, unseen(", running")),
      el("span", { class: "badge" }, icon("bell"), el("span"), unseen()),
      el("span", { class: "by" }, actorMark(), unseen()),
      timeElement(),
      el("span", { class: "version" }),
    );
    const [, name, running, badge, by, time, version] = element.children;
    const [, count, what] = badge.children;
    element.parts = { title: name.firstChild, key: name.lastChild, running, badge, count, what, by, time, version };
    return element;
  }

  update(element, row) {
    const { session } = row;
    const { parts } = element;
    element.style.setProperty("--level", row.level - 1);
    this.describe(element, row);
    setText(parts.title, nameOf(session));
    setText(parts.key, session.label === undefined ? "" : shortKey(session.sessionKey));
    setAttribute(element, "title", session.sessionKey);
    setAttribute(parts.running, "hidden", session.status === "running" ? null : "");
    this.updateBadge(parts, row);
    this.updateChange(element, session);
    setAttribute(parts.version, "class", this.model.unseenBy(session) > 0 ? "version unseen-by-some" : "version");
  }

  updateBadge(parts, row) {
    const count = row.notices + row.below;
    const where = row.below === 0 ? "" : row.notices === 0 ? " below" : ` here and ${row.below} below`;
    setHidden(parts.badge, count === 0);
    setText(parts.count, String(row.notices || row.below));
    setText(parts.what, ` ${(row.notices || row.below) === 1 ? "notice" : "notices"} pending${where}, `);
    setAttribute(parts.badge, "class", row.notices > 0 ? "badge" : "badge below");
    setAttribute(parts.badge, "title", `${parts.count.textContent}${parts.what.textContent.slice(0, -2)}`);
  }

  updateChange(element, session) {
    const { parts } = element;
    const version = session.stateVersion ?? 0;
    this.updateActor(parts.by, session.lastActor);
    setTime(parts.time, session.updatedAt);
    setText(parts.version, version === 0 ? "–" : `v${version}`);
    if (element.version !== undefined && element.version < version) glow(element);
    element.version = version;
  }

  describe(element, row) {
    setAttribute(element, "aria-level", row.level);
    setAttribute(element, "aria-setsize", row.setSize);
    setAttribute(element, "aria-posinset", row.index + 1);
    setAttribute(element, "aria-expanded", row.children > 0 ? String(row.expanded) : null);
    setAttribute(element, "aria-selected", String(row.id === this.selected));
    element.classList.toggle("aside", row.aside);
    element.classList.toggle("leaf", row.children === 0);
  }

  updateActor(by, actor) {
    const text = actor ? actorName(actor.type, actor.id, this.model) : "";
    setMark(by.firstChild, actor?.type);
    setAttribute(by, "title", text || null);
    setHidden(by, !actor);
    setText(by.lastChild, ` last changed by ${text}, `);
  }
}

// Words for those who listen, where others see a sign.
function unseen(text = "") {
  return el("span", { class: "unseen" }, text);
}
