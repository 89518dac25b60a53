// How sessions and actors are called on the page.

// One session among all: keys have no white space, and a key without prefix can belong to several agents.
export function idOf(sessionKey, agentId) {
  return `${sessionKey} ${agentId}`;
}

export function sessionId(session) {
  return idOf(session.sessionKey, session.agentId);
}

// The part of a key that tells sessions apart for a person: without the prefix, and of nested sub-agents the last one.
export function shortKey(key) {
  const qualified = /^agent:([^:]+):(.+)$/.exec(key);
  if (!qualified) return key;
  const [, agent, rest] = qualified;
  const last = rest.split("subagent:").at(-1);
  return agent === "main" || last !== rest ? last || rest : `${agent} / ${rest}`;
}

export function nameOf(session) {
  return session.label ?? shortKey(session.sessionKey);
}

const TYPES = new Set(["human", "agent", "system"]);

// What an actor's mark is drawn as; types that are not known are drawn like one that is no longer kept.
export function actorClass(type) {
  return TYPES.has(type) ? type : "unknown";
}

export function actorName(type, id, model) {
  if (type === "human") return id ? `person ${id}` : "a person";
  if (type === "agent") return id ? `agent ${model.nameOfKey(id)}` : "an agent";
  return type === "system" ? "the system" : "a person or the system";
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
