// Relative times that keep themselves up to date, with the exact time behind them.

import { el, setAttribute, setText } from "./dom.js";

const TICK_MS = 5000;
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
let skewMs = 0;

// The server's clock, by the Date header of its answers: a browser on another machine may be off by minutes.
export function setServerTime(header) {
  const difference = Date.parse(header ?? "") - Date.now();
  if (Number.isFinite(difference)) skewMs = Math.abs(difference) > 2000 ? difference : 0;
}

export function nowMs() {
  return Date.now() + skewMs;
}

export function relative(ms) {
  const seconds = Math.max(0, (nowMs() - ms) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${5 * Math.floor(seconds / 5)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function exact(ms) {
  return EXACT.format(ms);
}

export function timeElement() {
  return el("time");
}

export function setTime(element, ms) {
  if (element.dataset.ms !== String(ms)) {
    element.dataset.ms = ms;
    setAttribute(element, "datetime", new Date(ms).toISOString());
    setAttribute(element, "title", exact(ms));
  }
  setText(element, relative(ms));
}

export function keepTimes() {
  setInterval(() => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("time[data-ms]")) setText(element, relative(Number(element.dataset.ms)));
  }, TICK_MS);
}
