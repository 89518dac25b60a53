// The timeline: the lanes, and under them all events that are known, newest first.

import { el, glow, setAttribute, setHidden, setText } from "./dom.js";
import { LanesView } from "./lanes-view.js";
import { actorMark, setMark } from "./marks.js";
import { actorName } from "./names.js";
import { setTime, timeElement } from "./times.js";
import { VirtualRows } from "./virtual-rows.js";

const ROW_HEIGHT = 32;
const LANES_EVERY_MS = 5000;

export class TimelineView {
  constructor(open) {
    this.model = null;
    this.newest = null;
    this.opened = null;
    this.lanes = new LanesView(open);
    this.rows = new VirtualRows(document.getElementById("events"), {
      rowHeight: ROW_HEIGHT,
      create,
      update: (element, row) => this.update(element, row),
      open: ({ event }) => {
        this.opened = event.sequence;
        open(event.sessionKey, event.agentId, event.sequence - 1);
        this.rows.render();
      },
    });
    this.actors = document.getElementById("timeline-actors");
    this.span = document.getElementById("timeline-span");
    this.actors.addEventListener("change", () => this.render());
    this.span.addEventListener("change", () => this.render());
    setInterval(() => !document.hidden && this.model && this.showLanes(), LANES_EVERY_MS);
  }

  show(model) {
    const before = this.newest;
    this.model = model;
    this.newest = model.events[0]?.sequence ?? 0;
    this.fresh = before === null ? Infinity : before;
    this.render();
    this.fresh = Infinity;
  }

  render() {
    if (!this.model) return;
    this.shown = this.model.events.filter((event) => this.isWanted(event));
    this.rows.setRows(this.shown.map((event) => ({ id: event.sequence, event })));
    setHidden(document.getElementById("events-nothing"), this.shown.length > 0);
    const total = this.model.totals.events;
    const known = this.shown.length.toLocaleString("en");
    setText(document.getElementById("timeline-count"), this.shown.length === total ? known : `${known} of ${total.toLocaleString("en")}`);
    this.showLanes();
  }

  showLanes() {
    this.lanes.show(this.model, this.shown, Number(this.span.value));
  }

  isWanted(event) {
    const box = this.actors.querySelector(`input[value="${CSS.escape(event.actorType)}"]`);
    return box === null || box.checked;
  }

  update(element, { id, event }) {
    const { parts } = element;
    const actor = actorName(event.actorType, event.actorId, this.model);
    const session = this.model.nameOf(event.sessionKey, event.agentId);
    setMark(parts.mark, event.actorType);
    setText(parts.session, session);
    setText(parts.summary, event.summary);
    setText(parts.actor, actor);
    setText(parts.sequence, `#${event.sequence}`);
    setTime(parts.time, event.occurredAt);
    setAttribute(element, "title", `${event.sessionKey}\n${event.kind}`);
    setAttribute(element, "aria-setsize", this.rows.rows.length);
    setAttribute(element, "aria-posinset", this.rows.indexes.get(id) + 1);
    setAttribute(element, "aria-selected", String(id === this.opened));
    if (id > this.fresh && !element.glowed) glow(element);
    element.glowed = true;
  }
}

function create() {
  const element = el(
    "div",
    { role: "option", class: "row event" },
    actorMark(),
    el("span", { class: "session" }, el("bdi")),
    el("span", { class: "summary" }, el("bdi")),
    el("span", { class: "actor" }, el("bdi")),
    timeElement(),
    el("span", { class: "version" }),
  );
  const [mark, session, summary, actor, time, sequence] = element.children;
  element.parts = { mark, session: session.firstChild, summary: summary.firstChild, actor: actor.firstChild, time, sequence };
  return element;
}
