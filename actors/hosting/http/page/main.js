// Wires the page: the stream says that something changed, the feed asks what, the views show it.

import { announce } from "./announcer.js";
import { ConnectionView } from "./connection-view.js";
import { DetailView } from "./detail-view.js";
import { setHidden, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { MatrixView } from "./matrix-view.js";
import { idOf } from "./names.js";
import { SignIn } from "./sign-in.js";
import { Stream } from "./stream.js";
import { themeToggle } from "./theme-toggle.js";
import { TimelineView } from "./timeline-view.js";
import { keepTimes } from "./times.js";
import { showTotals } from "./totals-view.js";
import { TreeView } from "./tree-view.js";

const STREAM = "api/stream";
const STREAMED = ["ready", "recorded", "notices", "gap"];
// Whether a run is active, and what has expired, comes in no event.
const LOOK_AGAIN_MS = 15_000;

const connection = new ConnectionView();
const tree = new TreeView(open);
const matrix = new MatrixView(open);
const timeline = new TimelineView(open);
const detail = new DetailView(open, () => tree.select(null));
const feed = new Feed({ show, waiting, failed });
const stream = new Stream(STREAM, STREAMED, () => feed.refresh(), (state) => connection.set(state));
const signIn = new SignIn(() => stream.connect());
const pauseButton = document.getElementById("pause");

function show(model, before) {
  const nothing = model.totals.sessions === 0;
  document.body.classList.toggle("empty", nothing);
  setHidden(document.getElementById("welcome"), !nothing);
  showTotals(model.totals);
  tree.show(model);
  matrix.show(model);
  timeline.show(model);
  detail.refresh(model);
  announce(model, before);
  document.body.classList.add("ready");
}

function open(key, agentId, since) {
  detail.open(key, agentId, since, feed.model);
  tree.select(idOf(key, agentId ?? feed.model.byKey.get(key)?.agentId));
}

function waiting(count) {
  setText(pauseButton, feed.paused ? `Resume${count > 0 ? ` (${count} new)` : ""}` : "Pause");
}

function failed(error) {
  if (error.status !== 401) return;
  connection.set("locked");
  signIn.open();
}

pauseButton.addEventListener("click", () => {
  feed.setPaused(!feed.paused);
  connection.setPaused(feed.paused);
  waiting(0);
});
document.addEventListener("visibilitychange", () => !document.hidden && feed.refresh());
setInterval(() => !document.hidden && feed.refresh(), LOOK_AGAIN_MS);
themeToggle(document.getElementById("theme"));
keepTimes();
feed.refresh();
stream.connect();
