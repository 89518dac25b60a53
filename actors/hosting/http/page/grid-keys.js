// One tab stop for a table: the arrow keys go from cell to cell, Enter opens the cell. A cell that takes part has `cellId`.

export class GridKeys {
  constructor(container, open) {
    this.container = container;
    this.open = open;
    this.activeId = null;
    container.addEventListener("keydown", (event) => this.pressed(event));
    container.addEventListener("click", (event) => this.clicked(event));
  }

  // To be called when the cells have changed: exactly one of them can be reached by Tab.
  refresh() {
    const cells = this.lines().flat();
    const active = cells.find((cell) => cell.cellId === this.activeId) ?? cells[0];
    this.activeId = active?.cellId ?? null;
    for (const cell of cells) {
      const tabIndex = cell === active ? 0 : -1;
      if (cell.tabIndex !== tabIndex || !cell.hasAttribute("tabindex")) cell.tabIndex = tabIndex;
    }
  }

  lines() {
    return [...this.container.querySelectorAll("tbody tr")].map((line) => [...line.children].filter((cell) => cell.cellId));
  }

  activate(cell) {
    if (!cell) return;
    this.activeId = cell.cellId;
    this.refresh();
    cell.focus();
  }

  clicked(event) {
    const cell = event.target.closest("td, th");
    if (!cell?.cellId) return;
    this.activate(cell);
    this.open(cell);
  }

  pressed(event) {
    const cell = event.target.closest("td, th");
    if (!cell?.cellId || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.open(cell);
    else if (!this.moved(event.key, cell)) return;
    event.preventDefault();
  }

  moved(key, cell) {
    const lines = this.lines();
    const row = lines.findIndex((line) => line.includes(cell));
    const column = lines[row].indexOf(cell);
    const end = lines[row].length - 1;
    const goals = {
      ArrowRight: [row, Math.min(end, column + 1)],
      ArrowLeft: [row, Math.max(0, column - 1)],
      ArrowDown: [Math.min(lines.length - 1, row + 1), column],
      ArrowUp: [Math.max(0, row - 1), column],
      Home: [row, 0],
      End: [row, end],
    };
    if (!(key in goals)) return false;
    this.activate(lines[goals[key][0]][goals[key][1]]);
    return true;
  }
}
