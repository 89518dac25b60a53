// An actor's mark: a circle for people, a square for agents, a triangle for the system, in a colour of its own each.

import { setAttribute, svg } from "./dom.js";
import { actorClass } from "./names.js";

export function actorMark() {
  return svg("svg", { class: "mark", "aria-hidden": "true" }, svg("use"));
}

export function setMark(element, type) {
  const shown = actorClass(type);
  setAttribute(element, "class", `mark ${shown}`);
  setAttribute(element.firstChild, "href", `#mark-${shown}`);
}

export function icon(name) {
  return svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `#icon-${name}` }));
}
