// Fetches what there is whenever it is told that something changed, one request at a time, and not faster than the server can take.

import { ask } from "./api.js";
import { EVENTS_MAX, Model, merged, ofPresent } from "./model.js";

const NEWEST = 200;
const SHORTEST_WAIT_MS = 80;
// So many times the last request's duration lie between two of them, so that many pages do not wear a gateway out.
const EASE = 2;

export class Feed {
  // `show(model)` at every change, unless paused; `waiting(count)` says how many events are held back; `failed(error)`.
  constructor({ show, waiting, failed }) {
    this.show = show;
    this.waiting = waiting;
    this.failed = failed;
    this.events = [];
    this.model = null;
    this.held = null;
    this.paused = false;
    this.busy = false;
    this.again = false;
  }

  async refresh() {
    this.again = true;
    if (this.busy) return;
    this.busy = true;
    while (this.again) {
      this.again = false;
      await pause(await this.once());
    }
    this.busy = false;
  }

  async once() {
    const began = performance.now();
    try {
      this.take(await this.read());
    } catch (error) {
      this.failed(error);
    }
    return Math.max(SHORTEST_WAIT_MS, EASE * (performance.now() - began));
  }

  async read() {
    const newest = await ask("api/live/overview", { events: this.events.length === 0 ? EVENTS_MAX : NEWEST });
    const events = merged(this.events, newest);
    if (events !== null) return { overview: newest, events };
    const all = await ask("api/live/overview", { events: EVENTS_MAX });
    return { overview: all, events: all.events.toReversed() };
  }

  take({ overview, events }) {
    this.events = ofPresent(events, overview);
    const model = new Model(overview, this.events);
    if (this.paused) this.hold(model);
    else this.apply(model);
  }

  hold(model) {
    this.held = model;
    const last = this.model?.events[0]?.sequence ?? 0;
    this.waiting(model.events.filter((event) => event.sequence > last).length);
  }

  apply(model) {
    this.held = null;
    const before = this.model;
    this.model = model;
    this.show(model, before);
  }

  setPaused(paused) {
    this.paused = paused;
    if (!paused && this.held !== null) this.apply(this.held);
    if (!paused) this.waiting(0);
  }
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
