// What changed in a session since a version, as session_status tells it, with its gap where retention has removed something.

import { el, reconcile, setAttribute, setHidden, setText } from "./dom.js";
import { actorMark, setMark } from "./marks.js";
import { actorName, plural } from "./names.js";
import { setTime, timeElement } from "./times.js";

export class ChangesView {
  constructor(from, more) {
    this.input = el("input", { type: "number", min: "0", step: "1", id: "changes-since", inputmode: "numeric", required: "" });
    const form = el("form", { class: "since" }, el("label", { for: "changes-since" }, "since version"), this.input, el("button", { type: "submit" }, "Show"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      from(this.input.valueAsNumber);
    });
    this.result = el("p", { class: "count", role: "status" });
    this.gap = el("p", { class: "gap", role: "note", hidden: "" });
    this.list = el("ol", { class: "changes" });
    this.button = el("button", { type: "button", class: "quiet", hidden: "" }, "Show more");
    this.button.addEventListener("click", more);
    this.element = el("section", { class: "delta" }, el("h3", {}, "Changes"), form, this.result, this.gap, this.list, this.button);
  }

  show(changes, since, version, model) {
    if (this.since !== since) this.input.value = since;
    this.since = since;
    const count = `${plural(changes.events.length, "event")}${changes.truncated ? ", more follow" : ""}`;
    setText(this.result, since >= version && changes.events.length === 0 ? `Nothing since version ${since}; it is at ${version}.` : `${count} from version ${since} to ${version}`);
    this.showGap(changes);
    setHidden(this.button, !changes.truncated);
    reconcile(this.list, changes.events, (event) => event.sequence, create, (line, event) => update(line, event, model));
  }

  showGap({ historyGap, hint, earliestAvailableSequence }) {
    setHidden(this.gap, !historyGap);
    const earliest = earliestAvailableSequence === undefined ? "None is kept." : `The earliest one kept is ${earliestAvailableSequence}.`;
    setText(this.gap, historyGap ? `History gap. ${hint} ${earliest}` : "");
  }
}

function create() {
  return el("li", {}, actorMark(), el("span", { class: "summary" }, el("bdi")), el("span", { class: "version" }), el("span", { class: "actor" }, el("bdi")), timeElement());
}

function update(line, event, model) {
  const [mark, summary, sequence, actor, time] = line.children;
  setMark(mark, event.actorType);
  setText(summary.firstChild, event.payload?.turns > 1 ? `${event.summary} (${event.payload.turns} turns)` : event.summary);
  setText(sequence, `#${event.sequence}`);
  setText(actor.firstChild, [actorName(event.actorType, event.actorId, model), event.runId && `run ${event.runId}`].filter(Boolean).join(" · "));
  setTime(time, event.occurredAt);
  setAttribute(line, "title", event.kind);
}
