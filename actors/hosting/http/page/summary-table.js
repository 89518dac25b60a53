// The summary of a large matrix: a row for each watcher, a square for each of its targets, those with most to be told first.

import { el, reconcile, setAttribute, setHidden, setText, svg } from "./dom.js";
import { byPending } from "./matrix.js";
import { plural } from "./names.js";

const PAGE = 100;
const SQUARES_MAX = 120;
const PER_LINE = 30;
const STEP = 8;
const SIDE = 6;
const NAMES_MAX = 3;
const HEADINGS = ["Watcher", "Watches", "Pending", "Targets", "Not told yet of"];

export class SummaryTable {
  constructor(element, rerender) {
    this.element = element;
    this.shownMax = PAGE;
    this.body = el("tbody");
    element.append(el("thead", {}, el("tr", {}, ...HEADINGS.map((text) => el("th", { scope: "col" }, text)))), this.body);
    this.button = el("button", { type: "button", class: "quiet", hidden: "" });
    this.button.addEventListener("click", () => {
      this.shownMax += PAGE;
      rerender();
    });
  }

  show({ watchers }, model) {
    const shown = byPending(watchers).slice(0, this.shownMax);
    reconcile(this.body, shown, (watcher) => watcher.id, create, (line, watcher) => update(line, watcher, model));
    setHidden(this.button, watchers.length <= this.shownMax);
    setText(this.button, `Show ${Math.min(PAGE, watchers.length - this.shownMax)} more of ${plural(watchers.length, "watcher")}`);
  }
}

function create() {
  const strip = svg("svg", { class: "strip", "aria-hidden": "true" }, svg("path", { class: "clean" }), svg("path", { class: "pending" }));
  return el("tr", {}, el("th", { scope: "row" }, el("bdi")), el("td", { class: "number" }), el("td", { class: "number" }), el("td", {}, strip), el("td", { class: "names" }));
}

function update(line, watcher, model) {
  const [header, watches, pending, strip, names] = line.children;
  [...line.children].forEach((cell, index) => {
    cell.cellId = `${watcher.key}\n${index}`;
    cell.opens = [watcher.key];
  });
  setText(header.firstChild, watcher.name);
  setAttribute(header, "title", watcher.key);
  setText(watches, watcher.held.length.toLocaleString("en"));
  setText(pending, watcher.pending.length === 0 ? "–" : watcher.pending.length.toLocaleString("en"));
  setAttribute(pending, "class", watcher.pending.length === 0 ? "number" : "number lit");
  drawStrip(strip, watcher);
  setText(names, namesOf(watcher.pending, model));
}

function drawStrip(cell, watcher) {
  const squares = watcher.held.slice(0, SQUARES_MAX);
  const [clean, pending] = cell.firstChild.children;
  setAttribute(cell.firstChild, "width", Math.min(PER_LINE, squares.length) * STEP);
  setAttribute(cell.firstChild, "height", Math.ceil(squares.length / PER_LINE) * STEP);
  setAttribute(clean, "d", pathOf(squares, false));
  setAttribute(pending, "d", pathOf(squares, true));
  setAttribute(cell, "aria-label", `${watcher.held.length} targets, ${watcher.pending.length} pending`);
}

function pathOf(squares, pending) {
  const square = (cursor, at) => `M${(at % PER_LINE) * STEP} ${Math.floor(at / PER_LINE) * STEP}h${SIDE}v${SIDE}h-${SIDE}z`;
  return squares.map((cursor, at) => (cursor.pending === pending ? square(cursor, at) : "")).join("");
}

function namesOf(cursors, model) {
  const named = cursors.slice(0, NAMES_MAX).map((cursor) => model.nameOf(cursor.target, cursor.targetAgentId));
  const left = cursors.length - named.length;
  return left > 0 ? `${named.join(", ")} and ${left} more` : named.join(", ");
}
