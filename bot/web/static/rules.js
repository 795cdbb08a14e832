// The current policy, rules and grants: what concerns this person; for admins all of it, with forms and ends.
// All changes are made with the words of /approvals, so the page can do no more than a chat can.

import { get, Newest, post, remove } from "./api.js";
import { announce, DATA, data, h, keeping, shown } from "./dom.js";
import { ruleForm } from "./ruleform.js";
import { ago, expiry, stamp } from "./times.js";
import { keep, keepField, kept } from "./typed.js";

const POLICY = {
  always: "Every tool asks, those that only read too.",
  writes: "Every change asks.",
  destructive: "Only what cannot be undone asks; other changes run and are shown.",
  never: "Nothing asks. Nod makes every change it wants to.",
};
const ROLES = { admin: "Admins", approver: "Approvers" };

function hours(seconds) {
  return seconds >= 3600 ? `${+(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 60)} min`;
}

function fact(name, ...value) {
  return h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value));
}

export class Rules {
  /** `changed()` is called when something may have changed for the whole page. */
  constructor(element, changed = () => {}) {
    this.element = element;
    this.changed = changed;
    this.newest = new Newest();
    element.classList.add("rules");
    this.now = h("div", {});
    this.rules = h("div", {});
    this.grants = h("div", {});
    this.forms = [this.setForm(), h("h2", { class: "section" }, "Test a call"), this.tryForm()];
    for (const each of this.forms) each.hidden = true;
    this.servers = h("section", { hidden: true, "aria-label": "MCP servers" });
    this.revokeAll = this.button("Revoke all", "revoke all", "Revoke all grants", "seldom small");
    this.word = h("p", { class: "card-word", role: "status", ...DATA, hidden: true });
    element.append(
      this.word,
      h("h2", { class: "section" }, "Current policy"), this.now,
      h("h2", { class: "section" }, "Rules"), this.rules, ...this.forms,
      h("div", { class: "section-head" }, h("h2", { class: "section" }, "Grants"), this.revokeAll), this.grants,
      this.servers,
    );
  }

  lookAgain() {
    this.show();
  }

  /** Ask for everything again; what was typed stays. */
  async show() {
    try {
      const found = await this.newest.of(() => get("api/rules"));
      if (found && !this.saying) this.word.hidden = true;
      if (found) keeping(this.element, () => this.draw(found));
      if (!found?.everything) return;
      const more = await this.newest.of(() => Promise.all([get("api/mcp"), get("api/tools"), get("healthz")]));
      if (!more) return;
      const [{ servers }, { tools }, { models }] = more;
      keeping(this.servers, () => this.drawServers(servers));
      this.chosen.offer(tools.map((each) => each.name), models.map((each) => each.name));
    } catch (error) {
      this.say(error.message, true);
    }
  }

  draw({ everything, policy, ttl_seconds, paused, roles, rules, grants }) {
    this.everything = everything;
    for (const each of this.forms) each.hidden = !everything;
    this.now.replaceChildren(h("div", { class: "card" },
      h("dl", { class: "facts" },
        fact("Policy", h("b", { translate: "no" }, policy), ". ", POLICY[policy] ?? "", rules.length ? " Rules below may differ." : ""),
        fact("Waits", hours(ttl_seconds)),
        everything && Object.entries(roles).map(([role, who]) => fact(ROLES[role] ?? role, data(who.join(", ") || "no one"))),
        fact("State", paused ? "Paused. Nothing runs and timers are stopped." : "Running")),
      everything && h("div", { class: "card-buttons" }, paused ? this.button("Resume", "resume", "Resume", "primary") : this.button("Pause everything", "pause", "Pause everything", ""))));
    this.grants.replaceChildren(...(grants.length ? grants.map((each) => this.grant(each)) : [this.none("No grants: every change still asks.")]));
    this.revokeAll.hidden = !everything || grants.length < 2;
    this.rules.replaceChildren(everything ? "" : h("p", { class: "help lead" }, "These rules concern you. Only admins change rules and revoke grants."), ...(rules.length ? rules.map((each) => this.rule(each)) : [this.none(everything ? "No custom rules. The defaults above apply." : "No rule concerns you. The defaults above apply.")]));
  }

  drawServers(servers) {
    this.servers.hidden = servers.length === 0;
    this.servers.replaceChildren(h("h2", { class: "section" }, "MCP servers"), ...servers.map((each) => this.server(each)));
  }

  server({ name, trouble, said, tools, left_out, sign_in }) {
    const state = trouble ? ["Unavailable: ", data(trouble)] : `${tools} tools`;
    const who = sign_in?.signed_in ? ["Signed in by ", data(sign_in.by), " ", ago(sign_in.at)] : sign_in ? "No one is signed in." : "";
    const wanted = sign_in?.wanted ? ["It asks for more: ", data(sign_in.wanted), ". Sign in again to allow it."] : "";
    const buttons = h("div", { class: "buttons" });
    if (sign_in) {
      buttons.append(h("button", { type: "button", class: "button small", "aria-label": `Sign in at ${name}`, onclick: () => this.signIn(name, buttons) }, "Sign in"));
      if (sign_in.signed_in) buttons.append(h("button", { type: "button", class: "button small", "aria-label": `Sign out of ${name}`, onclick: () => this.signOut(name) }, "Sign out"));
    }
    return h("article", { class: "card ruling", "aria-label": `MCP server ${name}` },
      h("div", {}, h("p", { ...DATA }, shown(name)), h("p", { class: "help" }, state), h("p", { class: "help" }, said ? ["It said: ", data(said)] : ""), h("p", { class: "help", ...DATA }, shown(left_out)), h("p", { class: "help" }, who), h("p", { class: "help" }, wanted)), buttons);
  }

  /** A browser opens a new page only for a press, so the address becomes a link to press. */
  async signIn(name, place) {
    try {
      const { id, url } = await post(`api/mcp/${encodeURIComponent(name)}/login`);
      if (!/^https?:\/\//.test(url)) throw new Error("The sign-in names no web page.");
      const link = h("a", { class: "button small primary", href: url, target: "_blank", rel: "noopener noreferrer" }, "Open the sign-in page");
      place.replaceChildren(link);
      link.focus();
      let text = null;
      while (text === null && place.isConnected) ({ text } = await get(`api/mcp/logins/${encodeURIComponent(id)}`));
      if (text !== null) this.say(text);
    } catch (error) {
      this.say(error.message, true);
    }
    this.saying = true;
    await this.show();
    this.saying = false;
  }

  async signOut(name) {
    try {
      this.say((await remove(`api/mcp/${encodeURIComponent(name)}/login`)).text);
    } catch (error) {
      this.say(error.message, true);
    }
    this.saying = true;
    await this.show();
    this.saying = false;
  }

  none(words) {
    return h("p", { class: "muted" }, words);
  }

  rule({ id, words, set_by, set_at, until, trouble }) {
    const end = until ? ["; ", expiry(until, "ends")] : "";
    return h("article", { class: "card ruling", "aria-label": `Rule ${id}` },
      h("div", {}, h("p", { ...DATA }, shown(words)), h("p", { class: "help" }, `Rule ${id}, set by `, data(set_by), " ", ago(set_at), end),
        trouble && h("p", { class: "fault" }, "It ", data(trouble), ". Where it asks or forbids, it counts for every call.")),
      this.everything && this.button("Drop", `drop ${id}`, `Drop rule ${id}`, "small"));
  }

  grant({ label, words, given_by, given_at, expires_at, uses, proposal_id }) {
    const end = expires_at ? [expiry(expires_at, "ends")] : ["ends with its conversation"];
    return h("article", { class: "card ruling", "aria-label": `Grant ${label}` },
      h("div", {}, h("p", {}, `${label}: `, data(words)),
        h("p", { class: "help" }, "Given by ", data(given_by), " ", ago(given_at), `; used ${uses} ${uses === 1 ? "time" : "times"}; `, end, ". ",
          h("a", { href: `#/inbox/${encodeURIComponent(proposal_id)}` }, "The decision"))),
      this.everything && this.button("Revoke", `revoke ${label}`, `Revoke ${label}`, "small"));
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
      this.saying = true; // it is about what is drawn now
      await this.show();
      this.saying = false;
      this.changed();
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
    const tool = h("input", { type: "text", id: "try-tool", list: "tool-names", autocomplete: "off", spellcheck: "false", required: true });
    const given = h("textarea", { id: "try-arguments", rows: 2, spellcheck: "false", class: "data", translate: "no" }, "{}");
    const answer = h("p", { class: "answer", role: "status" });
    keepField(tool, "try tool");
    keepField(given, "try arguments");
    const form = h("form", { class: "card", "aria-label": "Test a call" },
      h("label", { class: "label", for: "try-tool" }, "Tool"), tool,
      h("label", { class: "label", for: "try-arguments" }, "Arguments, as JSON"), given,
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "button" }, "Test")), answer);
    form.addEventListener("input", () => answer.replaceChildren());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = `policy test ${tool.value.trim()} ${given.value.trim() || "{}"}`;
      try {
        answer.replaceChildren(data((await post("api/commands", { name: "approvals", text })).text));
        answer.classList.remove("fault");
      } catch (error) {
        answer.replaceChildren(data(error.message));
        answer.classList.add("fault");
      }
    });
    return form;
  }

  /** What the rule would have changed; `sum`: what newer changes gave, where it looks further back. */
  async tryOnPast(rule, before = "", sum = null) {
    try {
      const found = await post("api/rules/try", { rule, before });
      if (sum) {
        for (const effect of Object.keys(found.effects)) found.effects[effect] += sum.effects[effect];
        found.looked += sum.looked;
        found.priced += sum.priced;
        found.price = [...sum.price, ...found.price];
        found.back_to ??= sum.back_to;
      }
      this.drawPast(rule, found);
    } catch (error) {
      this.past.replaceChildren(h("p", { class: "fault", ...DATA }, shown(error.message)));
    }
  }

  drawPast(rule, found) {
    const { spared, asked, refused, otherwise } = found.effects;
    const counted = [["Would not have been asked for", spared], ["Asked for in addition", asked], ["Refused", refused], ["Decided by others, by more, or no longer refused", otherwise]];
    const far = found.back_to ? [", back to ", stamp(found.back_to)] : "";
    this.past.replaceChildren(
      h("dl", { class: "facts" }, counted.filter(([, many], at) => at < 2 || many).map(([words, many]) => fact(words, String(many)))),
      spared ? h("p", {}, found.priced ? `Of these, people had declined, edited or undone ${found.priced}:` : "People had declined, edited or undone none of these.") : "",
      h("ul", {}, found.price.map((each) => h("li", {}, h("a", { href: `#/inbox/${encodeURIComponent(each.id)}` }, data(each.title)), ` ${each.price}`, each.by ? [" by ", data(each.by)] : "", each.reason ? [": ", data(each.reason)] : ""))),
      h("p", { class: "help" }, `Looked at ${found.looked} changes of the last 30 days`, far, ", with the risk that was stored then, under the rules of today. Reads are not included."),
      found.next ? h("button", { type: "button", class: "button small", onclick: () => this.tryOnPast(rule, found.next, found) }, "Look further back") : "");
  }

  setForm() {
    const words = h("input", { type: "text", id: "set-rule", autocomplete: "off", spellcheck: "false", required: true, placeholder: "policy always for delete_*", "aria-describedby": "set-help" });
    this.chosen = ruleForm((said) => {
      words.value = said;
      this.past?.replaceChildren();
    });
    const form = h("form", { class: "card", "aria-label": "Set a rule" }, this.chosen.element,
      h("label", { class: "label", for: "set-rule" }, "Set a rule"), words,
      h("p", { class: "help", id: "set-help" }, "These words are sent. You can write them yourself, as after /approvals in a chat: “help” lists them all."),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "button", onclick: () => this.tryOnPast(words.value.trim()) }, "Try on the past"),
        h("button", { type: "submit", class: "button primary" }, "Set the rule")),
      (this.past = h("div", { class: "past", role: "status", "aria-label": "What the rule would have changed" })));
    words.addEventListener("input", () => this.past.replaceChildren());
    words.value = kept("rule") ?? words.value;
    form.addEventListener("input", () => keep("rule", words.value));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await this.command(words.value.trim())) keep("rule", "");
    });
    return form;
  }
}
