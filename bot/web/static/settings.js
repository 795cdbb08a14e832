// For admins: what nod doctor finds, with what to do about it, and the settings that apply. No secret is shown.

import { get } from "./api.js";
import { DATA, h, shown } from "./dom.js";
import { Page, table } from "./pages.js";
import { ago } from "./times.js";

const PATIENCE = 130_000; // milliseconds: the doctor may take two minutes
const HEALTH = { fail: ["To fix", "bad"], warn: ["Worth a look", "waiting"], ok: ["Fine", "good"] };

export class Settings extends Page {
  head() {
    this.button = h("button", { type: "button", class: "button small", onclick: () => this.examine() }, "Check everything");
    this.findings = h("div", { class: "page", role: "status" }, h("p", { class: "help" }, "Looks at the settings and at everything they reach, as nod doctor does. It takes some seconds."));
    return [h("div", { class: "section-head" }, h("h2", { class: "section" }, "Doctor"), this.button), this.findings];
  }

  load() {
    return get("api/settings");
  }

  draw({ settings }) {
    const given = settings.filter((each) => each.given);
    const rest = settings.filter((each) => !each.given);
    this.body.replaceChildren(
      h("h2", { class: "section" }, "Settings"),
      h("p", { class: "help" }, "They come from the environment and from .env, and are read at the start. Secrets are never shown."),
      ...(given.length ? [table("Settings", ["Setting", "Value"], given.map(row))] : []),
      h("details", { class: "defaults", open: !given.length }, h("summary", {}, `${rest.length} with their defaults`), table("Defaults", ["Setting", "Value"], rest.map(row))));
  }

  async examine() {
    this.button.disabled = true;
    this.button.textContent = "Checking…";
    try {
      const { at, findings, fault } = await get("api/doctor", PATIENCE);
      const order = Object.keys(HEALTH);
      const found = order.flatMap((health) => findings.filter((each) => each.health === health));
      const wrong = findings.filter((each) => each.health !== "ok").length;
      this.findings.replaceChildren(
        h("p", { class: fault ? "notice-word bad" : "help" }, fault || (wrong ? `${wrong} of ${findings.length} need a look. ` : "All is well. "), fault ? "" : h("span", {}, "Checked ", ago(at), ".")),
        h("ul", { class: "findings" }, found.map(finding)));
    } catch (error) {
      this.findings.replaceChildren(h("p", { class: "notice-word bad" }, error.message));
    } finally {
      this.button.disabled = false;
      this.button.textContent = "Check again";
    }
  }
}

function finding({ name, health, fix }) {
  const [words, tone] = HEALTH[health];
  return h("li", {}, h("div", {}, h("p", { ...DATA }, shown(name)), fix ? h("p", { class: "help", ...DATA }, shown(fix)) : null), h("span", { class: `state ${tone}` }, words));
}

function row({ name, value, secret, given }) {
  const told = secret ? (given ? "set" : "not set") : value ?? "not set";
  return [h("code", { translate: "no" }, name), secret || value === null ? h("span", { class: "muted" }, told) : h("code", { ...DATA }, shown(told))];
}
