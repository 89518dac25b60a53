// The four numbers in the page's head.

import { el, reconcile, setAttribute, setText } from "./dom.js";

const NAMES = [["sessions", "sessions"], ["events", "events"], ["cursors", "watches"], ["pending", "notices pending"]];

export function showTotals(totals) {
  const items = NAMES.map(([field, name]) => ({ field, name, count: totals[field] }));
  reconcile(document.getElementById("totals"), items, (item) => item.field, create, update);
  document.title = totals.pending > 0 ? `(${totals.pending}) kizuki` : "kizuki";
}

function create({ name }) {
  return el("div", {}, el("dt", {}, name), el("dd"));
}

function update(element, { field, count }) {
  setText(element.lastChild, count.toLocaleString("en"));
  setAttribute(element, "class", field === "pending" && count > 0 ? "lit" : null);
}
