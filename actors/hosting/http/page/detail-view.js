// One session from near: what it is, its notices, what changed since a version, who watches it and whom it watches.

import { ask } from "./api.js";
import { ChangesView } from "./changes-view.js";
import { CursorsTable } from "./cursors-table.js";
import { el, reconcile, setHidden, setText } from "./dom.js";
import { FactsView } from "./facts-view.js";
import { icon } from "./marks.js";
import { nameOf, plural } from "./names.js";

// The changes are told 200 at a time.
const PAGES_MAX = 25;

export class DetailView {
  // `open(key, agentId, since)` shows another session, `closed()` is told that none is shown any more.
  constructor(open, closed) {
    this.element = document.getElementById("detail");
    this.closed = closed;
    this.shown = null;
    this.asked = 0;
    this.build(open);
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  build(open) {
    this.heading = el("h2", { id: "detail-heading" }, el("bdi"));
    const close = el("button", { type: "button", class: "icon-button", "aria-label": "Close this session" }, icon("close"));
    close.addEventListener("click", () => this.close());
    this.failure = el("p", { class: "failure", role: "alert", hidden: "" });
    this.facts = new FactsView(open);
    this.notices = el("section", { class: "notices" }, el("h3", { id: "notices-heading" }), el("ul", { tabindex: "0", "aria-labelledby": "notices-heading" }));
    this.changes = new ChangesView((since) => this.from(since), () => this.more());
    this.watchers = new CursorsTable("Watched by", "No session watches it.", (cursor) => [cursor.watcher], open, (since) => this.from(since));
    this.watching = new CursorsTable("Watches", "It watches no session.", (cursor) => [cursor.target, cursor.targetAgentId], open);
    const parts = [this.facts.element, this.notices, this.changes.element, this.watchers.element, this.watching.element];
    this.element.append(el("header", { class: "head" }, this.heading, el("span", { class: "spacer" }), close), this.failure, el("div", { class: "scroll" }, ...parts));
  }

  // `since` undefined: from where the watcher that is furthest behind stands, else from the beginning.
  open(key, agentId, since, model) {
    this.model = model;
    const opener = document.activeElement;
    if (!this.element.contains(opener)) this.opener = opener;
    const known = model.byKey.get(key);
    const agent = agentId ?? known?.agentId;
    this.shown = { key, agentId: agent, since: since ?? this.furthestBehind(key, agent), pages: 1 };
    this.element.hidden = false;
    document.body.classList.add("with-detail");
    setText(this.heading.firstChild, model.nameOfKey(key));
    this.element.querySelector(".scroll").scrollTop = 0;
    // Who came by keyboard, or sees nothing else, is taken along; who clicked stays where they are.
    if (opener?.matches(":focus-visible") || getComputedStyle(this.element).position === "fixed") this.element.focus();
    this.load();
  }

  furthestBehind(key, agentId) {
    const behind = (this.model.heldOn.get(`${key} ${agentId}`) ?? []).filter((cursor) => cursor.pending);
    return behind.length === 0 ? 0 : Math.min(...behind.map((cursor) => cursor.lastSeen));
  }

  close() {
    this.shown = null;
    this.element.hidden = true;
    document.body.classList.remove("with-detail");
    this.closed();
    this.opener?.focus?.();
  }

  from(since) {
    this.shown = { ...this.shown, since, pages: 1 };
    this.load();
  }

  more() {
    this.shown.pages = Math.min(PAGES_MAX, this.shown.pages + 1);
    this.load();
  }

  refresh(model) {
    this.model = model;
    if (this.shown !== null) this.load();
  }

  // An answer that comes after another session was opened is dropped.
  async load() {
    const number = ++this.asked;
    try {
      const near = await this.read(this.shown);
      if (number === this.asked && this.shown !== null) this.show(near);
    } catch (error) {
      if (number === this.asked && this.shown !== null) this.fail(error);
    }
  }

  async read({ key, agentId, since, pages }) {
    const named = { sessionKey: key, ...(agentId === undefined ? {} : { agentId }) };
    const near = await ask("api/live/session", { ...named, changesSince: since });
    const { events } = near.stateChanges;
    for (let page = 1; page < pages && near.stateChanges.truncated; page += 1) {
      const next = (await ask("api/live/session", { ...named, changesSince: near.stateChanges.nextChangesSince })).stateChanges;
      events.push(...next.events);
      Object.assign(near.stateChanges, { truncated: next.truncated, nextChangesSince: next.nextChangesSince });
    }
    return near;
  }

  fail(error) {
    setText(this.failure, error.status === 404 ? "There is no such session (any more)." : error.message);
    setHidden(this.failure, false);
  }

  show(near) {
    setHidden(this.failure, true);
    setText(this.heading.firstChild, nameOf(near.session));
    this.facts.show(near.session, this.model);
    this.showNotices(near.notices);
    this.changes.show(near.stateChanges, this.shown.since, near.session.stateVersion ?? 0, this.model);
    this.watchers.show(near.watchers, near.hasMore.watchers, this.model);
    this.watching.show(near.watching, near.hasMore.watching, this.model);
  }

  showNotices(notices) {
    setHidden(this.notices, notices.length === 0);
    setText(this.notices.firstChild, `${plural(notices.length, "notice")} pending`);
    const keyOf = (notice) => `${notice.target} ${notice.targetAgentId}`;
    reconcile(this.notices.lastChild, notices, keyOf, () => el("li", {}, el("bdi")), (line, notice) => setText(line.firstChild, notice.text));
  }
}
