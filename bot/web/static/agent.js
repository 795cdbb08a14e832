// One agent: what it is, for whom it calls, when it last did, and its end.

import { remove } from "./api.js";
import { DATA, data, h, shown } from "./dom.js";
import { ago, stamp } from "./times.js";

const dotted = (facts) => facts.flatMap((part, index) => (index ? [" · ", ...part] : part));

/** An agent on a page, which is drawn again once it was ended. */
export function agentCard(page, agent) {
  const place = h("div", { class: "buttons" });
  offer(page, place, agent);
  return h("article", { class: "card person agent", "aria-label": `Agent ${agent.name}` }, describe(agent), place);
}

function offer(page, place, agent) {
  place.replaceChildren(h("button", { type: "button", class: "button small", "aria-label": `End ${agent.name}`, onclick: () => confirm(page, place, agent) }, "End"));
}

function confirm(page, place, agent) {
  const end = () => page.doing(async () => {
    await remove(`api/agents/${encodeURIComponent(agent.label)}`);
    return { text: `Ended: ${agent.name}.` };
  });
  const sure = h("button", { type: "button", class: "button small danger", onclick: end }, "End");
  place.replaceChildren(h("p", { class: "help" }, "Its token stops. Its open calls are withdrawn, and its grants end."), sure, h("button", { type: "button", class: "button small", onclick: () => offer(page, place, agent) }, "Keep"));
  sure.focus();
}

function describe({ name, person_name: person, mine, agreed, tools, servers, last_used_at: used, until }) {
  const facts = [mine ? ["For you"] : ["For ", data(person)], used ? ["Used ", ago(used)] : ["Not used yet"], ...(until ? [["Until ", stamp(until)]] : [])];
  return [h("p", {}, h("b", { ...DATA }, shown(name)), agreed ? null : [" ", h("span", { class: "state waiting" }, mine ? "Waits for your yes" : "Waits for their yes")]),
    h("p", { class: "help" }, "May call ", data(tools.join(", ")), servers.length ? [". Acts as ", mine ? "you" : data(person), " at ", data(servers.join(", "))] : null),
    h("p", { class: "help" }, dotted(facts))];
}
