// What asking costs: plots that the server drew, each with its numbers as a table, and all of it as CSV.

import { get } from "./api.js";
import { data, h } from "./dom.js";
import { nothing, Page, plot, table } from "./pages.js";

const BY = { tool: "Tool", place: "Place", person: "Person", connection: "In whose name" };
const SPANS = { 7: "7 days", 30: "30 days", 90: "90 days", 365: "A year" };
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const DAY = 86_400_000; // milliseconds
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
const number = (count) => count.toLocaleString("en");

/** `4 min`, `1.5 h`, `2 d`: how long a decision took. */
function took(seconds) {
  if (seconds === null) return "–";
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([each]) => seconds >= each) ?? [1, "s"];
  return `${number(+(seconds / size).toFixed(seconds / size < 10 ? 1 : 0))} ${unit}`;
}

/** Signs of how people decide: everyone's for admins, else the reader's own. */
function readingOf({ everyone, timed, total, people }) {
  const rows = [...(total ? [["Everyone", total]] : []), ...people.map((each) => [timed && everyone ? data(each.name) : "You", each.signs])];
  const heads = ["Person", "Decided", ...(timed ? ["Fast"] : []), "Longest run", "A day", "Peak hour", "Off hours", ...(timed ? ["View all", "Diff"] : [])];
  const cells = ([name, s]) => [name, s.decided, ...(timed ? [`${number(s.faster)} of ${number(s.timed)}`] : []), s.longest_run, +s.a_day.toFixed(1), s.busiest_hour, s.outside_hours,
    ...(timed ? [`${number(s.viewed)} of ${number(s.approved)}`, s.with_trial ? `${number(s.diffs_open)} of ${number(s.with_trial)}` : "–"] : [])];
  return [
    h("h2", { class: "section" }, everyone ? "How people decide" : "How you decide"),
    h("p", { class: "muted" }, "Signs, not guilt: who knows a call by heart need not read it. ",
      timed ? "Fast: faster than what was shown can be read, at 5 words a second. View all and Diff: opened before Approve. " : "NOD_INSIGHTS=people also counts how fast, and shows admins names. ",
      "Longest run: approvals without a no. Off hours: not from 8 to 18 on weekdays, ", everyone ? "yours on your clock, others' on the team's." : "on your clock."),
    rows.length ? table("How people decide", heads, rows.map(cells)) : h("p", { class: "muted" }, "Nothing was decided."),
  ];
}

export class Insights extends Page {
  head() {
    this.by = "tool";
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "By" }, Object.entries(BY).map(([by, words]) =>
      h("button", { type: "button", class: "tab", data: { tab: by }, onclick: () => this.turn(by) }, words)));
    this.span = h("select", { "aria-label": "How far back", onchange: () => this.show() }, Object.entries(SPANS).map(([days, words]) => h("option", { value: days, selected: days === "30" }, words)));
    return [h("div", { class: "sieve" }, this.tabs, this.span, h("button", { type: "button", class: "button small", onclick: () => this.export() }, "Export CSV"))];
  }

  turn(by) {
    this.by = by;
    this.show();
  }

  query() {
    return new URLSearchParams({ since: new Date(Date.now() - this.span.value * DAY).toISOString() });
  }

  load() {
    for (const each of this.tabs.children) each.setAttribute("aria-pressed", String(each.dataset.tab === this.by));
    return Promise.all([get(`api/insights?by=${this.by}&${this.query()}`), get(`api/insights/people?${this.query()}&zone=${encodeURIComponent(ZONE)}`)]).then(([found, signs]) => ({ ...found, signs }));
  }

  draw({ everyone, total, parts, deciders, week, plots, back_to, signs }) {
    const whose = everyone ? "Everyone was" : "You were";
    if (!total.asked) return this.body.replaceChildren(nothing("No one has been asked yet", "What people are asked, and how that ends, is counted here."));
    const ends = ["asked", "approved", "edited", "declined", "expired", "undone", "failed"];
    const heads = [BY[this.by], "Asked", "Approved", "Edited first", "Declined", "Expired", "Undone", "Failed"];
    const name = (each) => data(each.name);
    return this.body.replaceChildren(
      h("p", { class: "muted" }, `${whose} asked ${number(total.asked)} times: ${number(total.approved)} approved, ${number(total.edited)} of these edited first, `,
        `${number(total.declined)} declined, ${number(total.expired)} expired. `,
        total.median_seconds === null ? "" : `Half of the decisions took up to ${took(total.median_seconds)}, the slowest tenth ${took(total.slowest_seconds)} or more.`,
        back_to ? ` There is too much to count all of it: this goes back to ${new Date(back_to).toLocaleDateString("en")}.` : ""),
      plot("How it ended", plots.asked, table("How it ended", heads, parts.map((each) => [name(each), ...ends.map((end) => each.tally[end])]))),
      plot("Time to decide", plots.time, table("Time to decide", [BY[this.by], "Median", "Slowest tenth from"], parts.map((each) => [name(each), took(each.tally.median_seconds), took(each.tally.slowest_seconds)]))),
      plot("When people are asked", plots.week, table("When people are asked", ["Hour", ...DAYS], week[0].map((_, hour) => [`${String(hour).padStart(2, "0")}:00`, ...week.map((day) => day[hour])]))),
      h("h2", { class: "section" }, "Who decides"),
      deciders.length ? table("Who decides", ["Person", "Approved", "Declined"], deciders.map((each) => [name(each), each.approved, each.declined])) : h("p", { class: "muted" }, "No one has decided yet."),
      ...readingOf(signs));
  }

  export() {
    this.save(`api/insights/export?${this.query()}`, "insights.csv");
  }
}
