// What a session is.

import { el, reconcile, setAttribute, setText } from "./dom.js";
import { actorMark, setMark } from "./marks.js";
import { actorName } from "./names.js";
import { setTime, timeElement } from "./times.js";

export class FactsView {
  constructor(open) {
    this.key = el("code", { class: "whole-key" }, el("bdi"));
    this.copy = el("button", { type: "button", class: "quiet" }, "Copy key");
    this.copy.addEventListener("click", () => this.copyKey());
    this.list = el("dl", { class: "facts" });
    this.parent = el("button", { type: "button", class: "link" }, el("bdi"));
    this.parent.addEventListener("click", () => open(this.session.parent));
    this.actor = el("span", { class: "last-actor" }, actorMark(), el("bdi"));
    this.time = timeElement();
    this.element = el("section", { class: "about", "aria-label": "About the session" }, el("p", {}, this.key, this.copy), this.list);
  }

  show(session, model) {
    if (this.session?.sessionKey !== session.sessionKey) setText(this.copy, "Copy key");
    this.session = session;
    setText(this.key.firstChild, session.sessionKey);
    setTime(this.time, session.updatedAt);
    if (session.lastActor) this.showActor(session.lastActor, model);
    if (session.parent) setText(this.parent.firstChild, model.nameOfKey(session.parent));
    reconcile(this.list, this.facts(session), ([name]) => name, ([name]) => el("div", {}, el("dt", {}, name), el("dd")), showFact);
  }

  showActor({ type, id }, model) {
    setMark(this.actor.firstChild, type);
    setText(this.actor.lastChild, actorName(type, id, model));
    setAttribute(this.actor, "title", id);
  }

  facts(session) {
    return [
      ["Version", String(session.stateVersion ?? 0)],
      ["Status", session.status],
      ["Kind", session.kind],
      ["Agent", session.agentId],
      ["Changed", this.time],
      ...(session.lastActor ? [["Last actor", this.actor]] : []),
      ...(session.parent ? [["Parent", this.parent]] : []),
    ];
  }

  async copyKey() {
    try {
      await navigator.clipboard.writeText(this.session.sessionKey);
      setText(this.copy, "Copied");
    } catch {
      getSelection().selectAllChildren(this.key);
      setText(this.copy, "Selected");
    }
  }
}

function showFact(line, [, value]) {
  if (typeof value === "string") setText(line.lastChild, value);
  else if (line.lastChild.firstChild !== value) line.lastChild.replaceChildren(value);
}
