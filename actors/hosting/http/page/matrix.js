// Who watches whom: the cursors as a table of watchers and targets, or, where that would be too large to read, as one row a watcher.

import { idOf } from "./names.js";
import { cursorId } from "./model.js";

export const CELLS_MAX = 600;

// `watchers`: rows with key, name, cursors by target id, and how many are pending; `targets`: columns with id, key, agent id and name.
export function matrixOf(model, text, pendingOnly) {
  const cursors = model.cursors.filter((cursor) => (!pendingOnly || cursor.pending) && fits(model, cursor, wordsOf(text)));
  const targets = targetsOf(model, cursors);
  const watchers = watchersOf(model, cursors);
  return { cursors, targets, watchers, large: watchers.length * targets.length > CELLS_MAX };
}

function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

function fits(model, cursor, words) {
  if (words.length === 0) return true;
  const names = [model.nameOfKey(cursor.watcher), model.nameOf(cursor.target, cursor.targetAgentId)];
  const searched = [cursorId(cursor), ...names].join("\n").toLowerCase();
  return words.every((word) => searched.includes(word));
}

function targetsOf(model, cursors) {
  const found = new Map();
  for (const { target, targetAgentId } of cursors) {
    const id = idOf(target, targetAgentId);
    if (!found.has(id)) found.set(id, { id, key: target, agentId: targetAgentId, name: model.nameOf(target, targetAgentId) });
  }
  return [...found.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

function watchersOf(model, cursors) {
  return [...Map.groupBy(cursors, (cursor) => cursor.watcher)].map(([key, held]) => ({
    id: key,
    key,
    name: model.nameOfKey(key),
    held,
    byTarget: new Map(held.map((cursor) => [idOf(cursor.target, cursor.targetAgentId), cursor])),
    pending: held.filter((cursor) => cursor.pending),
  }));
}

// Those with most to be told first.
export function byPending(watchers) {
  return watchers.toSorted((one, other) => other.pending.length - one.pending.length || (one.key < other.key ? -1 : 1));
}

export function cursorText(cursor) {
  const positions = `last seen ${cursor.lastSeen}, notified ${cursor.notified}, material ${cursor.material}`;
  return cursor.pending ? `${positions}, a notice is pending` : `${positions}, nothing pending`;
}
