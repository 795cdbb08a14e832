// For admins: what is on, part by part, with who set each. It is turned on and off elsewhere.

import { get } from "./api.js";
import { data, h } from "./dom.js";
import { nothing, Page, table } from "./pages.js";
import { stamp } from "./times.js";

const number = (count) => count.toLocaleString("en");

export class Features extends Page {
  head() {
    return [h("p", { class: "help" }, "Everything here was set by someone, or by a setting. Chats show the same for /approvals features. ",
      h("a", { href: "#/settings" }, "The doctor"), " checks each.")];
  }

  load() {
    return get("api/features");
  }

  draw({ parts }) {
    this.body.replaceChildren(...(parts.length ? parts.flatMap(part) : [nothing("Nothing is on", "Rules, connections and agents are listed here once there are any.")]));
  }
}

function part({ name, lines, left_out: more }) {
  return [
    h("h2", { class: "section" }, data(name)),
    table(name, ["What", "Set by", "When"], lines.map(row)),
    more ? h("p", { class: "help" }, `${number(more)} more are not listed.`) : null,
  ].filter(Boolean);
}

function row({ words, set_by: by, set_at: at, rule }) {
  const what = rule === null ? data(words) : h("span", {}, h("a", { href: "#/rules" }, `Rule ${number(rule)}`), ": ", data(words));
  return [what, data(by), at ? stamp(at) : h("span", { class: "muted" }, "at the start")];
}
