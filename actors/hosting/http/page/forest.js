// The sessions as a forest of parents and children, and as the rows that are shown of it. Values in, values out.

import { nameOf, sessionId } from "./names.js";

// A node each: its session, its children, and its parent's id. What is its own ancestor is cut loose at one place.
export function forestOf(model) {
  const nodes = new Map(model.sessions.map((session) => [sessionId(session), { id: sessionId(session), session, children: [], parent: null }]));
  for (const node of nodes.values()) {
    const parent = node.session.parent === undefined ? undefined : model.byKey.get(node.session.parent);
    const above = parent && nodes.get(sessionId(parent));
    if (above && !isBelow(above, node)) {
      node.parent = above;
      above.children.push(node);
    }
  }
  return { nodes, roots: [...nodes.values()].filter((node) => node.parent === null) };
}

function isBelow(node, ancestor) {
  for (let above = node; above !== null; above = above.parent) if (above === ancestor) return true;
  return false;
}

// The rows in their order. `matches` is null, or says which sessions are looked for: then their ancestors are shown as well.
export function rowsOf(forest, isExpanded, matches, noticesOf) {
  const rows = [];
  for (const node of forest.nodes.values()) node.kept = matches === null || matches(node.session);
  if (matches !== null) keepAncestors(forest);
  for (const node of forest.nodes.values()) node.own = noticesOf(node.session);
  const shown = forest.roots.filter((node) => node.shown ?? node.kept);
  shown.forEach((node, index) => addRows(rows, node, 1, index, shown.length, isExpanded, matches !== null));
  for (const node of forest.nodes.values()) node.shown = undefined;
  return rows;
}

function keepAncestors(forest) {
  for (const node of forest.nodes.values()) node.shown = node.kept;
  for (const node of forest.nodes.values()) {
    if (node.kept) for (let above = node.parent; above !== null && !above.shown; above = above.parent) above.shown = true;
  }
}

function addRows(rows, node, level, index, setSize, isExpanded, searching) {
  const children = node.children.filter((child) => child.shown ?? child.kept);
  const expanded = children.length > 0 && (searching || isExpanded(node.id));
  const row = { id: node.id, session: node.session, parent: node.parent?.id ?? null, level, index, setSize, expanded };
  rows.push(Object.assign(row, { children: children.length, aside: !node.kept, notices: node.own, below: expanded ? 0 : noticesBelow(node) }));
  if (expanded) children.forEach((child, at) => addRows(rows, child, level + 1, at, children.length, isExpanded, searching));
}

function noticesBelow(node) {
  return node.children.reduce((sum, child) => sum + child.own + noticesBelow(child), 0);
}

// Whether a session is one that a person looks for: every word is in its name, key, kind or last actor.
export function looksFor(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return (session) => {
    const searched = searchedText(session);
    return words.every((word) => searched.includes(word));
  };
}

function searchedText(session) {
  const actor = session.lastActor ?? {};
  return [nameOf(session), session.sessionKey, session.agentId, session.kind, session.status, actor.type, actor.id].join("\n").toLowerCase();
}
