// Tells people who listen to the page of new notices, a few words at a time.

import { newNotices } from "./model.js";
import { plural } from "./names.js";

const NAMED_MAX = 2;

export function announce(model, before) {
  if (before === null) return;
  const fresh = newNotices(before, model);
  if (fresh.length > 0) document.getElementById("announcer").textContent = textOf(fresh, model);
}

function textOf(cursors, model) {
  if (cursors.length > NAMED_MAX) return `${plural(cursors.length, "new notice")}`;
  const told = cursors.map((cursor) => `${model.nameOfKey(cursor.watcher)}: ${model.nameOf(cursor.target, cursor.targetAgentId)} was changed`);
  return `New notice for ${told.join(". For ")}`;
}
