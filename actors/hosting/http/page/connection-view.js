// The state of the connection, told once when it changes.

import { setAttribute, setText } from "./dom.js";

const TEXTS = { connecting: "Connecting", live: "Live", lost: "Offline, trying again", paused: "Paused", locked: "Token needed" };

export class ConnectionView {
  constructor() {
    this.element = document.getElementById("connection");
    this.text = document.getElementById("connection-text");
    this.state = "connecting";
    this.paused = false;
    this.render();
  }

  set(state) {
    // While it is offline each further try would be told anew; without the token nothing else matters.
    if (state === "connecting" && this.state === "lost") return;
    if (state !== "live" && this.state === "locked") return;
    this.state = state;
    this.render();
  }

  setPaused(paused) {
    this.paused = paused;
    this.render();
  }

  render() {
    const shown = this.paused && this.state === "live" ? "paused" : this.state;
    setAttribute(this.element, "data-state", shown);
    setText(this.text, TEXTS[shown]);
  }
}
