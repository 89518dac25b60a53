// The whole table: a row for each watcher, a column for each target, three positions in each cell.

import { el, glow, reconcile, setAttribute, setText } from "./dom.js";
import { cursorText } from "./matrix.js";

export class MatrixTable {
  constructor(element) {
    this.element = element;
    this.head = el("tr");
    this.body = el("tbody");
    element.append(el("thead", {}, this.head), this.body);
  }

  show({ watchers, targets }) {
    reconcile(this.head, [{ id: "" }, ...targets], (target) => target.id, headerOf, updateHeader);
    reconcile(this.body, watchers, (watcher) => watcher.id, () => el("tr"), (line, watcher) => updateLine(line, watcher, targets));
  }
}

function headerOf(target) {
  return target.id === "" ? el("th", { scope: "col", class: "corner" }, "watcher ╲ target") : el("th", { scope: "col" }, el("bdi"));
}

function updateHeader(header, target) {
  if (target.id === "") return;
  setText(header.firstChild, target.name);
  setAttribute(header, "title", target.key);
}

function updateLine(line, watcher, targets) {
  const cells = [{ id: "", watcher }, ...targets.map((target) => ({ id: target.id, watcher, target, cursor: watcher.byTarget.get(target.id) }))];
  reconcile(line, cells, (cell) => cell.id, (cell) => (cell.id === "" ? el("th", { scope: "row" }, el("bdi")) : el("td")), updateCell);
}

function updateCell(element, cell) {
  element.cellId = `${cell.watcher.key}\n${cell.id}`;
  if (cell.id === "") updateWatcher(element, cell.watcher);
  else if (cell.cursor) updatePositions(element, cell);
  else empty(element, cell);
}

function updateWatcher(header, watcher) {
  header.opens = [watcher.key];
  setText(header.firstChild, watcher.name);
  setAttribute(header, "title", watcher.key);
}

function updatePositions(element, { watcher, target, cursor }) {
  const shown = [cursor.lastSeen, cursor.notified, cursor.material, cursor.pending].join();
  if (element.shown === shown) return;
  element.opens = [target.key, target.agentId, cursor.lastSeen];
  element.replaceChildren(...(cursor.pending ? pendingParts(cursor) : [spoken("nothing pending at "), String(cursor.lastSeen)]));
  setAttribute(element, "class", cursor.pending ? "watch lit" : "watch");
  setAttribute(element, "aria-label", null);
  setAttribute(element, "title", `${watcher.key} watches ${target.key}\n${cursorText(cursor)}`);
  if (element.shown) glow(element);
  element.shown = shown;
}

// What is seen are three numbers with signs between them; what is heard are words.
function pendingParts({ lastSeen, notified, material }) {
  const sign = () => el("span", { "aria-hidden": "true" }, " ▸ ");
  return [spoken("pending, last seen "), String(lastSeen), sign(), spoken(", notified "), String(notified), sign(), spoken(", material "), String(material)];
}

function spoken(words) {
  return el("span", { class: "unseen" }, words);
}

function empty(element, { watcher, target }) {
  if (element.shown === "") return;
  element.shown = "";
  element.opens = null;
  element.replaceChildren();
  setAttribute(element, "class", null);
  setAttribute(element, "title", null);
  setAttribute(element, "aria-label", `${watcher.name} does not watch ${target.name}`);
}
