// Agents: programs that call tools for a person. A token is made after its tools were listed, shown once, and ended here.

import { agentCard } from "./agent.js";
import { get, post } from "./api.js";
import { DATA, data, h, shown } from "./dom.js";
import { nothing, Page } from "./pages.js";
import { stamp } from "./times.js";

const LASTS = { "30d": "30 days", "90d": "90 days", "365d": "a year" };
const USUAL = "90d";
const SHOWN_TOOLS = 60; // of those that a token may call, before the rest is counted

const patterns = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

export class Agents extends Page {
  head() {
    this.making = h("section", { class: "page", "aria-label": "Make a token" });
    this.fold();
    return [h("p", { class: "muted" }, "A program with such a token calls tools for you. What it would change becomes a card that says so. It decides nothing."), this.making];
  }

  load() {
    return get("api/agents");
  }

  draw({ everyone, agents }) {
    const mine = agents.filter((each) => each.mine);
    const others = agents.filter((each) => !each.mine);
    this.body.replaceChildren(...[
      mine.length ? mine.map((each) => agentCard(this, each)) : nothing("No agents", "Nothing calls tools for you."),
      everyone && others.length ? [h("h2", { class: "section" }, "Everyone else"), ...others.map((each) => agentCard(this, each))] : null,
    ].flat().filter(Boolean));
  }

  // Making a token: the form, then the list of its tools, then the token

  fold() {
    this.making.replaceChildren(h("div", { class: "buttons" }, h("button", { type: "button", class: "button primary small", onclick: () => this.ask() }, "Make a token")));
  }

  ask(given = { name: "", tools: "", lasts: USUAL }) {
    const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", id: "agent-name", value: given.name, placeholder: "claude-code" });
    const tools = h("input", { type: "text", required: true, autocomplete: "off", id: "agent-tools", value: given.tools, placeholder: "issues_*, wiki_search", "aria-describedby": "agent-tools-help" });
    const lasts = h("select", { id: "agent-lasts" }, Object.entries(LASTS).map(([value, words]) => h("option", { value, selected: value === given.lasts }, words)));
    const form = h("form", { class: "card agent-form" },
      h("label", { for: "agent-name" }, "Name of the program"), name,
      h("label", { for: "agent-tools" }, "Tools it may call"), tools, h("p", { class: "help", id: "agent-tools-help" }, "Names with commas between them. * stands for any letters."),
      h("label", { for: "agent-lasts" }, "Lasts"), lasts,
      h("div", { class: "buttons" }, h("button", { class: "button primary small" }, "Show its tools"), h("button", { type: "button", class: "button small", onclick: () => this.fold() }, "Cancel")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.preview({ name: name.value.trim(), tools: tools.value, lasts: lasts.value });
    });
    this.making.replaceChildren(form);
    name.focus();
  }

  async preview(given) {
    try {
      this.say("");
      const found = await this.send(given, true);
      const make = h("button", { type: "button", class: "button primary small", onclick: () => this.make(given) }, "Make the token");
      const rest = found.tools.length - SHOWN_TOOLS;
      this.making.replaceChildren(h("section", { class: "card agent-form", "aria-label": "What it may call" },
        h("p", {}, data(given.name), found.tools.length ? ` may call ${found.tools.length === 1 ? "this tool" : `these ${found.tools.length} tools`} until `: " may call no tool now. Tools of that name can come until ", stamp(found.until), "."),
        found.tools.length ? h("ul", { class: "named" }, found.tools.slice(0, SHOWN_TOOLS).map((each) => h("li", {}, h("code", { ...DATA }, shown(each)))), rest > 0 ? h("li", {}, `and ${rest} more`) : null) : null,
        found.servers.length ? h("p", { class: "notice" }, "It acts as you at: ", data(found.servers.join(", ")), ". What it changes there needs your own press.") : null,
        h("p", { class: "help" }, "Tools that come later under these names are told to you first."),
        h("div", { class: "buttons" }, make, h("button", { type: "button", class: "button small", onclick: () => this.ask(given) }, "Back"))));
      make.focus();
    } catch (error) {
      this.say(error.message, true);
    }
  }

  async make(given) {
    try {
      this.say("");
      const { token } = await this.send(given, false);
      await this.show();
      const field = h("input", { type: "text", class: "token", readonly: true, "aria-label": "The token", value: token, translate: "no", onfocus: () => field.select() });
      const copy = h("button", { type: "button", class: "button primary small", onclick: async () => {
        await navigator.clipboard.writeText(token).then(() => { copy.textContent = "Copied"; }, () => field.select());
      } }, "Copy");
      const line = `claude mcp add --transport http nod ${new URL("mcp", document.baseURI).href} --header "Authorization: Bearer $NOD_TOKEN"`;
      this.making.replaceChildren(h("section", { class: "card agent-form", "aria-label": "The new token" },
        h("p", {}, "Copy the token of ", data(given.name), " now. It is not shown again."), field,
        h("p", { class: "help" }, "Put it in NOD_TOKEN where the program runs. For Claude Code:"), h("pre", { class: "lines", tabindex: 0, translate: "no" }, line),
        h("div", { class: "buttons" }, copy, h("button", { type: "button", class: "button small", onclick: () => this.fold() }, "Done"))));
      field.focus();
    } catch (error) {
      this.say(error.message, true);
    }
  }

  send({ name, tools, lasts }, dry) {
    return post("api/agents", { name, tools: patterns(tools), lasts, dry_run: dry });
  }

  hide() {
    super.hide();
    this.fold();
  }
}
