// Accounts at other servers that Nod acts as: connecting one, sending its number, ending it. Never a token.

import { get, post, remove } from "./api.js";
import { data, h } from "./dom.js";
import { nothing, Page } from "./pages.js";
import { ago } from "./times.js";

const DIGITS = 6;

export class Connections extends Page {
  head() {
    return [h("p", { class: "muted lead" }, "Where you connect an account, Nod acts there as you, and only when you ask. No one sees its token.")];
  }

  load() {
    return get("api/connections");
  }

  draw({ everyone, servers, connections, asked }) {
    if (!servers.length) {
      this.body.replaceChildren(nothing("No accounts to connect", "No server here is called under people's own accounts. An admin can set that up."));
      return;
    }
    const mine = connections.filter((each) => each.mine);
    const others = connections.filter((each) => !each.mine);
    const had = new Set(mine.filter((each) => !each.expired).map((each) => each.server));
    const missing = servers.filter((each) => each.identity === "person" && !had.has(each.name));
    this.body.replaceChildren(...asked.map((each) => this.ask(each)), ...mine.map((each) => this.connection(each)), ...missing.map((each) => this.missing(each)),
      ...(mine.length ? [this.everywhere(mine.length)] : []),
      ...(everyone && others.length ? [h("h2", { class: "section" }, "Everyone else"), ...others.map((each) => this.connection(each))] : []));
  }

  connection(each) {
    const { id, server, identity, owner_name: owner, account, connected_at: at, last_used_at: used, expired, rest, mine } = each;
    const place = h("div", { class: "buttons" });
    const whose = identity === "place" ? ["For ", data(owner)] : mine ? ["For you"] : ["For ", data(owner)];
    const facts = [whose, ["Connected ", ago(at)], used ? ["Used ", ago(used)] : ["Not used yet"]];
    this.offer(place, each);
    return h("article", { class: "card person", "aria-label": `Connection ${id.slice(0, 8)}` },
      h("p", {}, data(server), ": ", data(account), expired ? [" ", h("span", { class: "state bad" }, "Expired")] : null),
      rest ? h("p", {}, h("strong", {}, "Rests:"), ` ${rest}.`) : null,
      h("p", { class: "help" }, facts.flatMap((part, index) => (index ? [" · ", ...part] : part))), place);
  }

  offer(place, each) {
    const end = h("button", { type: "button", class: "button small", "aria-label": `Disconnect ${each.server}`, onclick: () => this.confirm(place, each) }, "Disconnect");
    place.replaceChildren(...(each.mine && each.expired && each.identity === "person" ? [this.connect(each.server), end] : [end]));
  }

  confirm(place, each) {
    const sure = h("button", { type: "button", class: "button small danger", onclick: () => this.doing(() => remove(`api/connections/${each.id}`)) }, "Disconnect");
    place.replaceChildren(h("p", { class: "help" }, "Nod no longer acts there until you connect again."), sure, h("button", { type: "button", class: "button small", onclick: () => this.offer(place, each) }, "Keep"));
    sure.focus();
  }

  missing({ name }) {
    return h("article", { class: "card person", "aria-label": `Connect ${name}` }, h("p", {}, data(name), ": not connected"), this.connect(name));
  }

  connect(name) {
    const place = h("div", { class: "buttons" });
    const open = async () => {
      try {
        const { url } = await post(`api/connections/${encodeURIComponent(name)}/link`, {});
        place.replaceChildren(h("a", { class: "button small primary", href: url, target: "_blank", rel: "noopener" }, `Open the page for ${name}`), h("p", { class: "help" }, "It works once, for 10 min. Then come back here and send the number that it shows."));
        place.firstElementChild.focus();
      } catch (error) {
        this.say(error.message, true);
      }
    };
    place.append(h("button", { type: "button", class: "button small primary", "aria-label": `Connect ${name}`, onclick: open }, "Connect"));
    return place;
  }

  ask(words) {
    const field = h("input", { type: "text", inputmode: "numeric", autocomplete: "one-time-code", maxlength: DIGITS, "aria-label": `Number for ${words}`, placeholder: "123456" });
    const form = h("form", { class: "sieve" }, field, h("button", { class: "button small primary" }, "Send the number"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.doing(() => post("api/connections/confirm", { digits: field.value.trim() }));
    });
    return h("article", { class: "card person", "aria-label": "A sign-in waits" }, h("p", {}, "Someone signed in (", data(words), ") to connect that account for you."),
      h("p", { class: "help" }, "If that was you, send the number that your browser shows. A wrong one ends it."), form);
  }

  everywhere(count) {
    const place = h("div", { class: "buttons" });
    const sure = () => {
      const yes = h("button", { type: "button", class: "button small danger", onclick: () => this.doing(() => remove("api/connections")) }, "Disconnect everywhere");
      place.replaceChildren(h("p", { class: "help" }, `Ends ${count === 1 ? "your connection" : `all ${count} connections`} and tells the servers.`), yes, h("button", { type: "button", class: "button small", onclick: () => this.show() }, "Keep"));
      yes.focus();
    };
    place.append(h("button", { type: "button", class: "button small", onclick: sure }, "Disconnect everywhere"));
    return place;
  }
}
