// The panel "Who watches whom": chooses between the whole table and the summary, and shows what leads to it.

import { el, setHidden, setText } from "./dom.js";
import { GridKeys } from "./grid-keys.js";
import { matrixOf } from "./matrix.js";
import { MatrixTable } from "./matrix-table.js";
import { plural } from "./names.js";
import { SummaryTable } from "./summary-table.js";

export class MatrixView {
  // `open(key, agentId, since)` shows a session; `since` is undefined where no version is meant.
  constructor(open) {
    this.model = null;
    const scroller = document.getElementById("matrix-scroll");
    this.table = new MatrixTable(el("table", { role: "grid", "aria-labelledby": "matrix-heading" }));
    this.summary = new SummaryTable(el("table", { class: "summary", role: "grid", "aria-labelledby": "matrix-heading" }), () => this.render());
    scroller.append(this.table.element, this.summary.element, this.summary.button);
    this.keys = new GridKeys(scroller, (cell) => cell.opens && open(...cell.opens));
    this.filter = document.getElementById("matrix-filter");
    this.pendingOnly = document.getElementById("matrix-pending");
    this.filter.addEventListener("input", () => this.render());
    this.pendingOnly.addEventListener("change", () => this.render());
  }

  show(model) {
    this.model = model;
    this.render();
  }

  render() {
    if (!this.model) return;
    const matrix = matrixOf(this.model, this.filter.value, this.pendingOnly.checked);
    const empty = matrix.cursors.length === 0;
    setHidden(this.table.element, matrix.large || empty);
    setHidden(this.summary.element, !matrix.large);
    this.table.show(matrix.large ? { watchers: [], targets: [] } : matrix);
    this.summary.show(matrix.large ? matrix : { watchers: [] }, this.model);
    this.keys.refresh();
    this.tell(matrix, empty);
  }

  tell(matrix, empty) {
    const pending = matrix.cursors.filter((cursor) => cursor.pending).length;
    const parts = [plural(matrix.watchers.length, "watcher"), plural(matrix.targets.length, "target"), `${pending.toLocaleString("en")} pending`];
    setText(document.getElementById("matrix-count"), empty ? "" : parts.join(" · "));
    setText(document.getElementById("matrix-legend"), matrix.large ? LEGEND_LARGE : LEGEND);
    setHidden(document.getElementById("matrix-legend"), empty);
    const nothing = document.getElementById("matrix-nothing");
    setHidden(nothing, !empty);
    setText(nothing, this.model.cursors.length === 0 ? "No session watches another one." : "No watch fits the filter.");
    const more = document.getElementById("matrix-more");
    setHidden(more, !this.model.hasMore.cursors);
    setText(more, `${this.model.cursors.length.toLocaleString("en")} of ${plural(this.model.totals.cursors, "watch", "watches")}, those with notices first.`);
  }
}

const LEGEND = "A lit cell: last seen ▸ notified ▸ material, and its notice is pending. A quiet one: all three are this version.";
const LEGEND_LARGE = "One square for each watched session, lit where a notice is pending. Filter to see versions.";
