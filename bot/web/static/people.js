// Who is who: the accounts that are one person, the roles of each, separating an account again, and one's own mutes.

import { get, remove } from "./api.js";
import { titled } from "./channels.js";
import { DATA, h, shown } from "./dom.js";
import { Page } from "./pages.js";
import { ago, stamp } from "./times.js";

const ROLES = { admin: "Admin", approver: "Approver" };

/** What people call an account: its name, or the account itself. */
const called = ({ name, account }) => name || account;

export class People extends Page {
  async load() {
    const [known, { mutes }] = await Promise.all([get("api/people"), get("api/mutes")]);
    return { ...known, mutes };
  }

  draw({ everyone, people, mutes }) {
    const others = everyone ? "Everyone who has linked accounts or a role is listed." : "Admins see everyone here.";
    this.body.replaceChildren(
      h("p", { class: "muted" }, "Accounts that are linked are one person, with one vote and the same rights. To link two of yours, write ", h("code", { translate: "no" }, "/nod link"), " in a chat. ", others),
      ...people.map((each) => this.person(each, each.you ? mutes : [])));
  }

  person({ you, accounts, away }, mutes) {
    const names = accounts.filter((each) => each.name && each.name !== "you");
    const named = names.find((each) => !each.account.startsWith("http:")) ?? names[0] ?? accounts[0];
    const roles = [...new Set(accounts.flatMap((each) => each.roles.map(({ role }) => role)))];
    return h("article", { class: "card person", "aria-label": `Person ${called(named)}` },
      h("h2", { class: "person-name", ...DATA }, h("span", { ...DATA }, shown(called(named))), you && called(named) !== "you" ? h("span", { class: "tag" }, "you") : null,
        roles.map((role) => h("span", { class: "state quiet" }, ROLES[role] ?? role))),
      away ? this.away(away, you ? "you" : "they") : null,
      mutes.map((each) => this.mute(each)),
      h("ul", { class: "accounts" }, accounts.map((each) => this.account(each, accounts.length > 1))));
  }

  away({ account, name, stand_in: standIn, until }, who) {
    const end = () => this.doing(() => remove(`api/people/absences?${new URLSearchParams({ account })}`));
    return h("div", { class: "away" }, h("p", { ...DATA }, "Away until ", stamp(until), ". ", h("b", { ...DATA }, shown(name)), " ", name === standIn ? null : h("code", { ...DATA }, shown(standIn)), ` may decide what ${who} may.`),
      h("button", { type: "button", class: "button small", "aria-label": `End the absence of ${account}`, onclick: end }, "End absence"));
  }

  mute({ id, tool_name: tool, until }) {
    const end = () => this.doing(() => remove(`api/mutes/${id}`));
    return h("div", { class: "away" }, h("p", { ...DATA }, "Muted until ", stamp(until), ": ", h("code", { ...DATA }, shown(tool)), ". You are not told of these cards, and may decide them."),
      h("button", { type: "button", class: "button small", "aria-label": `End the mute of ${tool}`, onclick: end }, "End mute"));
  }

  account(account, linked) {
    const { account: id, linked_at: at, roles } = account;
    const channel = id.split(":")[0];
    const facts = [at ? h("span", {}, "Linked ", ago(at)) : null,
      ...roles.map(({ role, since }) => h("span", {}, `${ROLES[role] ?? role} `, since ? ["since ", ago(since)] : "by the settings"))].filter(Boolean);
    const place = h("div", { class: "buttons" });
    this.offer(place, account, linked);
    return h("li", {}, h("div", {}, h("p", { ...DATA }, h("b", {}, titled(channel)), " ", h("code", { ...DATA }, shown(id))),
      h("p", { class: "help" }, facts.flatMap((each, at) => (at ? [" · ", each] : [each])))), place);
  }

  offer(place, account, linked) {
    if (!linked) return;
    place.replaceChildren(h("button", { type: "button", class: "button small", "aria-label": `Unlink ${account.account}`, onclick: () => this.confirm(place, account) }, "Unlink"));
  }

  confirm(place, account) {
    const sure = h("button", { type: "button", class: "button small danger", onclick: () => this.doing(() => remove(`api/people/links?${new URLSearchParams({ account: account.account })}`)) }, "Unlink");
    place.replaceChildren(h("p", { class: "help" }, "Grants that this person gave end."), sure, h("button", { type: "button", class: "button small", onclick: () => this.offer(place, account, true) }, "Cancel"));
    sure.focus();
  }
}
