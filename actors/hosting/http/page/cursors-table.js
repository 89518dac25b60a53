// The cursors on a session, or those that it holds: a row each with the three positions.

import { el, reconcile, setAttribute, setHidden, setText } from "./dom.js";
import { cursorId } from "./model.js";

const POSITIONS = ["lastSeen", "notified", "material"];

export class CursorsTable {
  // `sideOf(cursor)` gives key and agent id of the other side; with `from` the version last seen can be gone back to.
  constructor(title, nothing, sideOf, open, from = null) {
    this.sideOf = sideOf;
    this.open = open;
    this.from = from;
    this.body = el("tbody");
    const headings = ["Session", "Last seen", "Notified", "Material"].map((text) => el("th", { scope: "col" }, text));
    this.table = el("table", {}, el("thead", {}, el("tr", {}, ...headings)), this.body);
    this.nothing = el("p", { class: "nothing" }, nothing);
    this.more = el("p", { class: "more" }, "Only those with notices first: there are more.");
    this.element = el("section", { class: "cursors" }, el("h3", {}, title), this.table, this.nothing, this.more);
  }

  show(cursors, hasMore, model) {
    this.model = model;
    setHidden(this.table, cursors.length === 0);
    setHidden(this.nothing, cursors.length > 0);
    setHidden(this.more, !hasMore);
    reconcile(this.body, cursors, cursorId, (cursor) => this.create(cursor), (line, cursor) => this.update(line, cursor));
  }

  create() {
    const other = el("button", { type: "button", class: "link" }, el("bdi"));
    const line = el("tr", {}, el("th", { scope: "row" }, other), ...POSITIONS.map(() => el("td", { class: "number" })));
    other.addEventListener("click", () => this.open(...this.sideOf(line.cursor)));
    if (this.from) line.children[1].append(this.sinceButton(line));
    return line;
  }

  sinceButton(line) {
    const button = el("button", { type: "button", class: "link" });
    button.addEventListener("click", () => this.from(line.cursor.lastSeen));
    return button;
  }

  update(line, cursor) {
    line.cursor = cursor;
    const [key, agentId] = this.sideOf(cursor);
    const name = agentId === undefined ? this.model.nameOfKey(key) : this.model.nameOf(key, agentId);
    const [header, ...cells] = line.children;
    setText(header.firstChild.firstChild, name);
    setAttribute(header, "title", key);
    setAttribute(line, "class", cursor.pending ? "lit" : null);
    cells.forEach((cell, index) => setText(this.from && index === 0 ? cell.firstChild : cell, String(cursor[POSITIONS[index]])));
    if (this.from) setAttribute(cells[0].firstChild, "aria-label", `Changes since ${cursor.lastSeen}, which ${name} has seen`);
  }
}
