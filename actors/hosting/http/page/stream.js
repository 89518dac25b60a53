// The server's event stream: says that something has changed, and how the connection is. What has changed is asked for.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

export class Stream {
  // `changed()` at every event and at every new connection; `state("connecting" | "live" | "lost")`.
  constructor(url, names, changed, state) {
    this.url = url;
    this.names = names;
    this.changed = changed;
    this.state = state;
    this.waitMs = FIRST_WAIT_MS;
    addEventListener("online", () => this.connect());
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
  }

  connect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.state("connecting");
    const source = new EventSource(this.url);
    this.source = source;
    source.addEventListener("open", () => this.opened());
    source.addEventListener("error", () => this.failed(source));
    for (const name of this.names) source.addEventListener(name, () => this.changed());
  }

  opened() {
    this.waitMs = FIRST_WAIT_MS;
    this.state("live");
    this.changed();
  }

  // A browser tries again by itself only after some failures, and not sooner than it wants to.
  failed(source) {
    if (source !== this.source) return;
    source.close();
    this.state("lost");
    this.timer = setTimeout(() => this.connect(), this.waitMs);
    this.waitMs = Math.min(LONGEST_WAIT_MS, this.waitMs * 2);
  }
}
