// Making and updating elements. Text goes in as text, never as HTML: keys, labels and summaries come from strangers.

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; a child that is no node becomes a text node.
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Touches the document only where something differs, so that what is selected or being read aloud stays as it is.
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

const KNOWN = new WeakMap();

// Makes the children of `parent` those of `items`, one each by key: what was there is updated, not made anew, so that focus stays.
export function reconcile(parent, items, keyOf, create, update) {
  const before = KNOWN.get(parent) ?? new Map();
  const after = new Map();
  const wanted = items.map((item) => {
    const key = keyOf(item);
    const element = before.get(key) ?? create(item);
    update(element, item);
    after.set(key, element);
    return element;
  });
  for (const [key, element] of before) if (!after.has(key)) element.remove();
  placeInOrder(parent, wanted);
  KNOWN.set(parent, after);
}

function placeInOrder(parent, wanted) {
  let next = parent.firstElementChild;
  for (const element of wanted) {
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
}

// Plays the short glow that says "this has just changed"; the style sheet leaves it out for those who want no motion.
export function glow(element) {
  element.classList.remove("changed");
  void element.getBoundingClientRect();
  element.classList.add("changed");
}
