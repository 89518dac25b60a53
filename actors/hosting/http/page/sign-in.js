// Asks for the token where the server wants one. It is sent once; a cookie that scripts cannot read stands for it from then on.

import { el, setHidden, setText } from "./dom.js";

export class SignIn {
  constructor(done) {
    this.done = done;
    this.input = el("input", { type: "password", id: "token", autocomplete: "current-password", required: "" });
    this.failure = el("p", { class: "failure", role: "alert", hidden: "" });
    const form = el("form", {}, el("label", { for: "token" }, "Token of this server"), this.input, this.failure, el("button", { type: "submit" }, "Sign in"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.dialog = el("dialog", { class: "sign-in", "aria-label": "Sign in" }, form);
    document.body.append(this.dialog);
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  async send() {
    const content = JSON.stringify({ token: this.input.value });
    try {
      const response = await fetch("login", { method: "POST", headers: { "content-type": "application/json" }, body: content });
      if (response.ok) return this.succeed();
      this.fail(response.status === 401 ? "That is not the token." : `The server answered ${response.status}.`);
    } catch {
      this.fail("The server cannot be reached.");
    }
  }

  succeed() {
    this.input.value = "";
    setHidden(this.failure, true);
    this.dialog.close();
    this.done();
  }

  fail(text) {
    setText(this.failure, text);
    setHidden(this.failure, false);
  }
}
