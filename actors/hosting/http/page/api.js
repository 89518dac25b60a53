// Asking the server.

import { setServerTime } from "./times.js";

export class AskingFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The answer's document. Fails with `AskingFailed`: status 0 where there was no answer.
export async function ask(path, query = {}, signal = undefined) {
  const response = await answered(`${path}?${new URLSearchParams(query)}`, signal);
  setServerTime(response.headers.get("date"));
  if (!response.ok) throw new AskingFailed(response.status, await complaint(response));
  return response.json();
}

async function answered(url, signal) {
  try {
    return await fetch(url, { headers: { accept: "application/json" }, credentials: "same-origin", cache: "no-store", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new AskingFailed(0, "The server cannot be reached.");
  }
}

async function complaint(response) {
  try {
    return (await response.json()).error ?? response.statusText;
  } catch {
    return response.statusText;
  }
}
