// What is known of the system, by the questions that the views ask. Values in, values out.

import { idOf, nameOf, sessionId, shortKey } from "./names.js";

export const EVENTS_MAX = 5000;

export class Model {
  constructor(overview, events) {
    this.sessions = overview.sessions;
    this.cursors = overview.cursors;
    this.events = events;
    this.hasMore = overview.hasMore;
    this.totals = overview.totals;
    this.byId = new Map(this.sessions.map((session) => [sessionId(session), session]));
    this.byKey = new Map(this.sessions.toReversed().map((session) => [session.sessionKey, session]));
    this.heldBy = Map.groupBy(this.cursors, (cursor) => cursor.watcher);
    this.heldOn = Map.groupBy(this.cursors, (cursor) => idOf(cursor.target, cursor.targetAgentId));
  }

  nameOfKey(key) {
    const session = this.byKey.get(key);
    return session ? nameOf(session) : shortKey(key);
  }

  nameOf(key, agentId) {
    const session = this.byId.get(idOf(key, agentId));
    return session ? nameOf(session) : shortKey(key);
  }

  // How many notices wait for the session.
  noticesOf(session) {
    return (this.heldBy.get(session.sessionKey) ?? []).filter((cursor) => cursor.pending).length;
  }

  // How many watchers have not seen the session's latest change by another.
  unseenBy(session) {
    return (this.heldOn.get(sessionId(session)) ?? []).filter((cursor) => cursor.pending).length;
  }
}

// The events known so far with those of a newer answer, newest first; null if some in between may be missing.
export function merged(known, answer) {
  const newest = answer.events.toReversed();
  if (known.length === 0 || newest.length === 0) return newest;
  const oldestNew = newest.at(-1).sequence;
  if (answer.hasMore.events && oldestNew > known[0].sequence) return null;
  return [...newest, ...known.filter((event) => event.sequence < oldestNew)].slice(0, EVENTS_MAX);
}

// Without the events of sessions that are gone; where not all sessions were told nobody can say who is gone.
export function ofPresent(events, overview) {
  if (overview.hasMore.sessions) return events;
  const present = new Set(overview.sessions.map(sessionId));
  return events.filter((event) => present.has(idOf(event.sessionKey, event.agentId)));
}

// The cursors whose notice is new: not pending before, or pending from another position.
export function newNotices(before, after) {
  const known = new Set(before.cursors.filter((cursor) => cursor.pending).map(noticeId));
  return after.cursors.filter((cursor) => cursor.pending && !known.has(noticeId(cursor)));
}

export function cursorId(cursor) {
  return `${cursor.watcher} ${idOf(cursor.target, cursor.targetAgentId)}`;
}

function noticeId(cursor) {
  return `${cursorId(cursor)} ${cursor.lastSeen}`;
}
