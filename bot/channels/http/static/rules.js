// For admins: the policy in force, what it would do with a call, every rule and every grant, and their ends.
// All changes are made with the words of /approvals, so the page can do no more than a chat can.

import { get, post } from "./api.js";
import { announce, h, shown } from "./dom.js";
import { ago, expiry } from "./times.js";

const POLICY = {
  always: "Every tool asks, those that only read too.",
  writes: "Every tool that changes something asks.",
  destructive: "Only what cannot be undone asks; other changes run and are shown.",
  never: "Nothing asks. Whatever Nod wants to change, it changes.",
};
const ROLES = { admin: "Admins", approver: "Approvers" };

function hours(seconds) {
  return seconds >= 3600 ? `${+(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 60)} min`;
}

function fact(name, ...value) {
  return h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value));
}

export class Rules {
  constructor(element) {
    this.element = element;
    element.classList.add("rules");
    this.now = h("div", {});
    this.rules = h("div", {});
    this.grants = h("div", {});
    this.revokeAll = this.button("Revoke all", "revoke all", "Revoke all grants", "seldom small");
    this.word = h("p", { class: "card-word", role: "status", hidden: true });
    element.append(
      this.word,
      h("h2", { class: "section" }, "In force"), this.now,
      h("h2", { class: "section" }, "What would happen?"), this.tryForm(),
      h("div", { class: "section-head" }, h("h2", { class: "section" }, "Grants"), this.revokeAll), this.grants,
      h("h2", { class: "section" }, "Rules"), this.rules, this.setForm(),
    );
  }

  /** Ask for everything anew; what was typed stays. */
  async show() {
    try {
      this.draw(await get("api/rules"));
    } catch (error) {
      this.say(error.message, true);
    }
  }

  draw({ policy, ttl_seconds, paused, roles, rules, grants }) {
    this.now.replaceChildren(h("div", { class: "card" },
      h("dl", { class: "facts" },
        fact("Policy", h("b", {}, policy), ". ", POLICY[policy] ?? "", rules.length ? " Rules below may differ." : ""),
        fact("Waits", hours(ttl_seconds)),
        Object.entries(roles).map(([role, who]) => fact(ROLES[role] ?? role, shown(who.join(", ") || "nobody"))),
        fact("State", paused ? "Paused: nothing runs, proposals wait, clocks stand still." : "Running")),
      h("div", { class: "card-buttons" }, paused ? this.button("Resume", "resume", "Resume", "primary") : this.button("Pause everything", "pause", "Pause everything", ""))));
    this.grants.replaceChildren(...(grants.length ? grants.map((each) => this.grant(each)) : [this.none("Nothing runs by a grant.")]));
    this.revokeAll.hidden = grants.length < 2;
    this.rules.replaceChildren(...(rules.length ? rules.map((each) => this.rule(each)) : [this.none("No rule differs from the settings.")]));
  }

  none(words) {
    return h("p", { class: "muted" }, words);
  }

  rule({ id, words, set_by, set_at }) {
    return h("article", { class: "card ruling", "aria-label": `Rule ${id}` },
      h("div", {}, h("p", { dir: "auto" }, shown(words)), h("p", { class: "help" }, `Rule ${id}, set by `, shown(set_by), " ", ago(set_at))),
      this.button("Drop", `drop ${id}`, `Drop rule ${id}`, "small"));
  }

  grant({ label, words, given_by, given_at, expires_at, uses }) {
    const end = expires_at ? ["ends ", expiry(expires_at)] : ["ends with its conversation"];
    return h("article", { class: "card ruling", "aria-label": `Grant ${label}` },
      h("div", {}, h("p", { dir: "auto" }, `${label}: `, shown(words)),
        h("p", { class: "help" }, "Given by ", shown(given_by), " ", ago(given_at), `; used ${uses} ${uses === 1 ? "time" : "times"}; `, end)),
      this.button("Revoke", `revoke ${label}`, `Revoke ${label}`, "small"));
  }

  button(text, words, label, kind) {
    return h("button", { type: "button", class: `button ${kind}`, "aria-label": label, onclick: () => this.command(words) }, text);
  }

  /** Say one line of /approvals; true when it was done. */
  async command(text) {
    try {
      const answer = await post("api/commands", { name: "approvals", text });
      this.say(answer.text);
      return true;
    } catch (error) {
      this.say(error.message, true);
      return false;
    } finally {
      await this.show();
    }
  }

  say(text, bad = false) {
    this.word.hidden = false;
    this.word.classList.toggle("bad", bad);
    this.word.replaceChildren(shown(text));
    this.word.scrollIntoView({ block: "nearest" });
    announce(text);
  }

  tryForm() {
    const tool = h("input", { type: "text", id: "try-tool", autocomplete: "off", spellcheck: "false", required: true });
    const given = h("textarea", { id: "try-arguments", rows: 2, spellcheck: "false", class: "data" }, "{}");
    const answer = h("p", { class: "answer", role: "status" });
    const form = h("form", { class: "card", "aria-label": "What would happen?" },
      h("label", { class: "label", for: "try-tool" }, "Tool"), tool,
      h("label", { class: "label", for: "try-arguments" }, "Arguments, as JSON"), given,
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "button" }, "Test")), answer);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = `policy test ${tool.value.trim()} ${given.value.trim() || "{}"}`;
      try {
        answer.replaceChildren(shown((await post("api/commands", { name: "approvals", text })).text));
        answer.classList.remove("fault");
      } catch (error) {
        answer.replaceChildren(shown(error.message));
        answer.classList.add("fault");
      }
    });
    return form;
  }

  setForm() {
    const words = h("input", { type: "text", id: "set-rule", autocomplete: "off", spellcheck: "false", required: true, placeholder: "policy always for delete_*", "aria-describedby": "set-help" });
    const form = h("form", { class: "card", "aria-label": "Set a rule" },
      h("label", { class: "label", for: "set-rule" }, "Set a rule"), words,
      h("p", { class: "help", id: "set-help" }, "The words are those of /approvals: policy, risk, approvers, roles, quorum, ttl, remind, escalate, quiet, route, digest. “help” lists them all."),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "button" }, "Set")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await this.command(words.value.trim())) words.value = "";
    });
    return form;
  }
}
