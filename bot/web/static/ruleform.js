// A rule as a form: what is chosen becomes the words of /approvals, which stand below it and are what is sent.

import { h } from "./dom.js";

const MODES = { always: "Every call asks", writes: "Every change asks", destructive: "Only what can't be undone asks", never: "Nothing asks", forbid: "It can't be asked for" };
const LEVELS = { read: "It only reads", write: "It makes a change", destructive: "It can't be undone" };
const ROLES = { approver: "Approver", admin: "Admin" };
const PLANS = { human: "A person", lead: "The lead agent, or a person", both: "A person and the lead agent" };

// each part: name, label, kind or choices, and what it begins with
const SUBJECTS = {
  policy: { label: "Whether it asks", parts: [["mode", "Then", MODES, "always"]], say: ({ mode }) => `policy ${mode}` },
  approvers: { label: "Who may decide", parts: [["who", "Who", "text", "admin"]], help: "requester, approver, admin, member, or accounts such as slack:T1/U7", say: ({ who }) => `approvers ${who}` },
  quorum: { label: "How many must approve", parts: [["needed", "Approvals", "number", "2"]], say: ({ needed }) => `quorum ${needed}` },
  ttl: { label: "How long it waits", parts: [["hours", "Hours", "number", "24"]], say: ({ hours }) => `ttl ${hours}h` },
  undo: { label: "How long it can be undone", parts: [["minutes", "Minutes, 0 for never", "number", "30"]], say: ({ minutes }) => `undo ${Number(minutes) ? `${minutes}m` : "off"}` },
  remind: { label: "When to remind", parts: [["hours", "Every … hours", "number", "4"]], say: ({ hours }) => `remind ${hours}h` },
  escalate: { label: "Whom to ask next", parts: [["hours", "After … hours", "number", "8"], ["to", "Ask in", "text", ""]], help: "A place, such as #ops or slack:T1/C2", say: ({ hours, to }) => `escalate ${hours}h ${to}` },
  notify: { label: "Who is told, step by step", parts: [["steps", "Steps", "text", "reminder after 30m, slack:T1/C2 after 2h"]], help: "reminder, push, page, a place, an account or a group, each with after and a time", say: ({ steps }) => `notify ${steps}` },
  quiet: { label: "When to be quiet", parts: [["start", "From", "time", "22:00"], ["end", "To", "time", "07:00"]], help: "On your team's clock", say: ({ start, end }) => `quiet ${start} ${end}` },
  route: { label: "Where cards go", parts: [["to", "To", "text", ""]], help: "A place, such as #approvals or slack:T1/C2", say: ({ to }) => `route ${to}` },
  digest: { label: "A daily list", parts: [["at", "At", "time", "08:00"], ["to", "To", "text", ""]], help: "On your team's clock", say: ({ at, to }) => `digest ${at} ${to}` },
  risk: { label: "How risky a tool is", parts: [["level", "Then", LEVELS, "destructive"]], say: ({ level }) => `risk ${level}` },
  plans: { label: "Who approves plans", parts: [["approver", "Who", PLANS, "human"]], say: ({ approver }) => `plans ${approver}` },
  instructions: { label: "What is asked of Nod", parts: [["text", "Instructions", "text", ""]], say: ({ text }) => `instructions ${text}` },
  role: { label: "Who has a role", parts: [["account", "Account", "text", ""], ["role", "Role", ROLES, "approver"]], help: "An account, such as slack:T1/U7", say: ({ account, role }) => `roles add ${account} ${role}` },
};
const RAISING = { "": "Only its words come onto the card", raises: "Its no asks for one more approval", "raises, or is missing": "Its no, or no answer in 20 s, asks for one more approval" };
const OF_NO_CALL = ["quiet", "digest", "plans", "role", "instructions", "model"]; // these have no limits
const OF_NO_TOOL = ["role", "instructions", "model"];
const RECIPES = [
  ["Large amounts ask, every time", "policy", "*transfer*", { mode: "always" }, { where: "amount > 100" }],
  ["No shell here", "policy", "shell_*", { mode: "forbid" }],
  ["Deletions only by admins", "approvers", "delete_*", { who: "admin" }],
  ["Deletions need two people", "quorum", "delete_*", { needed: "2" }],
  ["Deploys need two people", "quorum", "*deploy*", { needed: "2" }],
  ["Comments run without asking", "policy", "*comment*", { mode: "never" }],
  ["Only what can't be undone asks", "policy", "*", { mode: "destructive" }],
  ["Everything asks, reading too", "policy", "*", { mode: "always" }],
  ["Wait a week", "ttl", "*", { hours: "168" }],
  ["Remind every four hours", "remind", "*", { hours: "4" }],
  ["Quiet at night", "quiet", "*", { start: "22:00", end: "07:00" }],
  ["People approve plans", "plans", "*", { approver: "human" }],
];

/** `write(words)` is called with each change; `offer(tools, models)` fills the lists to pick from. */
export function ruleForm(write) {
  const names = h("datalist", { id: "tool-names" });
  const subject = h("select", { id: "rule-subject" }, Object.entries(SUBJECTS).map(([value, { label }]) => h("option", { value }, label)));
  const tools = h("input", { type: "text", id: "rule-tools", list: "tool-names", value: "*", autocomplete: "off", spellcheck: "false" });
  const place = h("input", { type: "text", id: "rule-place", placeholder: "Anywhere", autocomplete: "off", spellcheck: "false" });
  const parts = h("div", { class: "rule-parts" });
  const help = h("p", { class: "help" });
  const limit = (id, type, placeholder) => h("input", { type, id: `rule-${id}`, placeholder, autocomplete: "off", spellcheck: "false" });
  const limits = [limit("by", "text", "Anyone"), limit("until", "text", "friday 18:00"), limit("begin", "time"), limit("end", "time"), limit("on", "text", "weekdays"), limit("where", "text", "amount > 100")];
  let fields = {};

  const row = (id, label, field) => h("div", { class: "rule-part" }, h("label", { class: "label", for: id }, label), field);

  function turn(values = {}) {
    fields = {};
    const { parts: wanted, help: words } = SUBJECTS[subject.value];
    parts.replaceChildren(...wanted.map(([name, label, kind, begin]) => {
      const id = `rule-${name}`;
      const value = values[name] ?? begin;
      const field = typeof kind === "object"
        ? h("select", { id }, Object.entries(kind).map(([each, said]) => h("option", { value: each, translate: said === each ? "no" : undefined, selected: each === value }, said)))
        : h("input", { type: kind, id, min: kind === "number" ? (name === "minutes" ? 0 : 1) : undefined, value, spellcheck: "false" });
      fields[name] = field;
      return row(id, label, field);
    }));
    help.textContent = words ?? "";
    tell();
  }

  function tell() {
    const said = SUBJECTS[subject.value].say(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value.trim()])));
    forTools.hidden = OF_NO_TOOL.includes(subject.value);
    const which = tools.value.trim() && tools.value.trim() !== "*" && !forTools.hidden ? ` for ${tools.value.trim()}` : "";
    const where = place.value.trim() && place.value.trim() !== "*" ? ` ${subject.value === "model" ? "for" : "in"} ${place.value.trim()}` : "";
    further.hidden = OF_NO_CALL.includes(subject.value);
    if (subject.value === "instructions") return void write(`instructions in ${place.value.trim() || "*"} ${fields.text.value.trim()}`);
    const [by, until, begin, end, on, condition] = limits.map((field) => (further.hidden ? "" : field.value.trim()));
    const narrowed = [by && `by ${by}`, until && `until ${until}`, begin && end && `between ${begin} and ${end}`, on && `on ${on}`, condition && `where ${condition}`];
    write(`${said}${which}${where} ${narrowed.filter(Boolean).join(" ")}`.replace(/\s+/g, " ").trim());
  }

  const recipes = h("details", { class: "recipes" }, h("summary", {}, "Begin with a recipe"), h("div", { class: "suggestions" }, RECIPES.map(([words, about, which, values, narrowed = {}]) =>
    h("button", { type: "button", class: "suggestion", onclick: () => {
      subject.value = about;
      tools.value = which;
      limits.forEach((field) => (field.value = narrowed[field.id.replace("rule-", "")] ?? ""));
      further.open ||= "where" in narrowed;
      turn(values);
    } }, words))));
  const labels = ["For what this account asks", "Until", "Between", "and", "On these days", "Where the arguments are"];
  const further = h("details", { class: "recipes" }, h("summary", {}, "Narrow it further"),
    h("div", { class: "rule-parts" }, limits.map((field, at) => row(field.id, labels[at], field))),
    h("p", { class: "help" }, "Times are in the team's time zone. A condition compares arguments, such as priority in (low, normal) or path matches \"docs/**\"."));
  const forTools = row("rule-tools", "For which tools", tools);
  subject.addEventListener("change", () => turn());
  const element = h("div", { class: "rule-form" }, recipes,
    h("div", { class: "rule-parts" }, row("rule-subject", "What the rule says", subject), forTools, row("rule-place", "Where", place)), parts, help, further, names);
  element.addEventListener("input", (event) => event.target !== subject && tell());
  turn();
  function offer(found, models) {
    names.replaceChildren(...found.map((each) => h("option", { value: each })));
    if (models.length < 2 || subject.querySelector("[value=model]")) return; // with one there is no choice
    const choices = Object.fromEntries(models.map((each) => [each, each]));
    SUBJECTS.model = { label: "Which model answers", parts: [["model", "Model", choices, models[0]]], help: "In a place, or to a person with an account such as slack:T1/U7", say: ({ model }) => `model ${model}` };
    SUBJECTS.opinion = { label: "Who gives a second opinion", parts: [["model", "Model", choices, models[0]], ["raising", "Then", RAISING, ""]], help: "Another model's few words on each card. It never approves.", say: ({ model, raising }) => `opinion ${model} ${raising}` };
    for (const name of ["model", "opinion"]) subject.append(h("option", { value: name }, SUBJECTS[name].label));
  }
  return { element, offer };
}
