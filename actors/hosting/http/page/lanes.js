// The timeline's lanes: which sessions, which stretch of time, and where on it their events lie. Values in, values out.

import { idOf } from "./names.js";

// How long, and by how many ticks it is divided.
const TICKS = new Map([[300_000, 5], [3_600_000, 4], [21_600_000, 6], [86_400_000, 4], [604_800_000, 7], [2_592_000_000, 6]]);
const SPANS_MS = [...TICKS.keys()];
// An automatic span is the shortest one that holds so many of the events, of so many sessions.
const EVENTS_WANTED = 12;
const SESSIONS_WANTED = 4;
const LANES_MAX = 7;
const MARKS_MAX = 120;

// `events` are newest first; `spanMs` 0 means automatic.
export function lanesOf(events, spanMs, now) {
  const span = spanMs || automaticSpan(events, now);
  const from = now - span;
  const within = events.filter((event) => event.occurredAt >= from);
  const groups = Map.groupBy(within, (event) => idOf(event.sessionKey, event.agentId));
  const lanes = [...groups].slice(0, LANES_MAX).map(([id, group]) => laneOf(id, group, from, span));
  lanes.sort((one, other) => (one.id < other.id ? -1 : 1));
  return { span, lanes, ticks: ticksOf(span), sessions: groups.size, events: within.length };
}

function automaticSpan(events, now) {
  const wanted = Math.min(EVENTS_WANTED, events.length);
  const sessions = Math.min(SESSIONS_WANTED, sessionsOf(events));
  const holds = (within) => within.length >= wanted && sessionsOf(within) >= sessions;
  return SPANS_MS.find((span) => holds(events.filter((event) => event.occurredAt >= now - span))) ?? SPANS_MS.at(-1);
}

function sessionsOf(events) {
  return new Set(events.map((event) => idOf(event.sessionKey, event.agentId))).size;
}

function laneOf(id, events, from, span) {
  const { sessionKey, agentId } = events[0];
  const marks = events.slice(0, MARKS_MAX).toReversed().map((event) => ({ event, at: Math.min(1, (event.occurredAt - from) / span) }));
  return { id, sessionKey, agentId, marks };
}

function ticksOf(span) {
  const count = TICKS.get(span);
  return Array.from({ length: count }, (_, index) => ({ at: index / count, agoMs: Math.round(span * (1 - index / count)) }));
}

export function spanText(ms) {
  const units = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"]];
  const [unit, name] = units.find(([size]) => ms >= size) ?? [1000, "s"];
  const count = ms / unit;
  return `${Number.isInteger(count) ? count : count.toFixed(1)} ${name}`;
}
