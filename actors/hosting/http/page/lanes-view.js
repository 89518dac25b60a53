// The lanes as a picture: one line for each of the sessions that changed last. What it shows is in the list below it as well.

import { el, reconcile, setAttribute, setText, svg } from "./dom.js";
import { lanesOf, spanText } from "./lanes.js";
import { actorClass, actorName, plural } from "./names.js";
import { exact, nowMs } from "./times.js";

const MARK = 12;

export class LanesView {
  constructor(open) {
    this.element = document.getElementById("lanes");
    this.axis = el("div", { class: "lane axis" }, el("span"), svg("svg", {}));
    this.lanes = el("div");
    this.element.append(this.lanes, this.axis);
    this.lanes.addEventListener("click", (event) => {
      const lane = event.target.closest(".lane");
      if (lane) open(lane.lane.sessionKey, lane.lane.agentId);
    });
  }

  show(model, events, spanMs) {
    const shown = lanesOf(events, spanMs, nowMs());
    reconcile(this.lanes, shown.lanes, (lane) => lane.id, createLane, (element, lane) => updateLane(element, lane, model));
    this.showAxis(shown.ticks);
    this.element.hidden = shown.lanes.length === 0;
    const summary = `${plural(shown.events, "event")} of ${plural(shown.sessions, "session")} in ${spanText(shown.span)}`;
    setAttribute(this.element, "aria-label", `${summary}, drawn on a line for each session that changed last; the list below has the same events.`);
  }

  showAxis(ticks) {
    const texts = [...ticks, { at: 1, agoMs: 0 }];
    reconcile(this.axis.lastChild, texts, (tick) => tick.at, () => svg("text", { y: "12" }), (text, tick) => {
      setAttribute(text, "x", `${tick.at * 100}%`);
      setAttribute(text, "text-anchor", tick.at === 1 ? "end" : "start");
      setText(text, tick.agoMs === 0 ? "now" : `−${spanText(tick.agoMs)}`);
    });
  }
}

function createLane() {
  return el("div", { class: "lane" }, el("span", { class: "label" }, el("bdi")), svg("svg", {}, svg("line", { x1: "0", x2: "100%", y1: "50%", y2: "50%" }), svg("g")));
}

function updateLane(element, lane, model) {
  element.lane = lane;
  const [label, picture] = element.children;
  setText(label.firstChild, model.nameOf(lane.sessionKey, lane.agentId));
  setAttribute(label, "title", lane.sessionKey);
  reconcile(picture.lastChild, lane.marks, (mark) => mark.event.sequence, createMark, (use, mark) => updateMark(use, mark, model));
}

function createMark() {
  const half = -MARK / 2;
  return svg("use", { width: MARK, height: MARK, y: "50%", transform: `translate(${half} ${half})` }, svg("title"));
}

function updateMark(use, { event, at }, model) {
  const type = actorClass(event.actorType);
  setAttribute(use, "href", `#mark-${type}`);
  setAttribute(use, "class", type);
  setAttribute(use, "x", `${(at * 100).toFixed(2)}%`);
  const text = `${event.summary}, by ${actorName(event.actorType, event.actorId, model)}, ${exact(event.occurredAt)} (${event.sequence})`;
  setText(use.firstChild, text);
}
