// The console's frame: which view is open, the list of conversations, the counts, signing in.

import { Agents } from "./agents.js";
import * as api from "./api.js";
import { Attached } from "./attach.js";
import { announce, DATA, data, h, icon, recall, redraw, remember, settle, shown } from "./dom.js";
import { Connections } from "./connections.js";
import { forgetDevice, renew } from "./devices.js";
import { Features } from "./features.js";
import { Feed, nameOf } from "./feed.js";
import { Inbox, isNotifying, notifyOf } from "./inbox.js";
import { Insights } from "./insights.js";
import { foldsAway, onEscape, sendOnEnter } from "./keys.js";
import { Memory } from "./memory.js";
import { Audit, Files, nothing, Tools, Usage, You } from "./pages.js";
import { People } from "./people.js";
import * as proposals from "./proposals.js";
import { Recorder } from "./record.js";
import { Rules } from "./rules.js";
import { Schedules } from "./schedules.js";
import { Settings } from "./settings.js";
import { Thread } from "./thread.js";
import { stamp } from "./times.js";
import * as typed from "./typed.js";

const $ = (id) => document.getElementById(id);
const LAST = "nod.conversation";
const LOOK_AGAIN = 30_000; // milliseconds between looks at what the feed of changes does not tell
const GRACE = 1500; // milliseconds before a lost connection is worth a word
const EXAMPLES = [
  "Show open issues",
  "Create an issue 'Add CSV export' with high priority, assigned to Sam",
  "Close #2 and #4, and assign #3 to Ana",
  "Who has the most work?",
  "Have one teammate survey the open issues and another reorganise them; plan first",
];
const ANYWHERE = ["What can you do?", "What can you look up for me?"];

const GONE = "That conversation doesn't exist. It may have been deleted.";

let conversations = [];
let gone = false; // a conversation that was asked for is not there
let me = { name: "", model: "", demo: false };
let recorder = null; // of the message box
let feed = null; // what the server tells as it happens

const thread = new Thread($("thread"), {
  begun(id) {
    remember(LAST, id);
    history.replaceState(null, "", `#/c/${encodeURIComponent(id)}`);
    route.shown = location.hash;
    listConversations();
  },
  turned: () => listConversations(),
  working(on) {
    $("working").hidden = !on;
    $("stop").hidden = !on;
  },
  missing() {
    remember(LAST, "");
    gone = true;
    location.hash = "#/";
    announce(GONE);
  },
  shown: (always) => {
    $("welcome").hidden = !(thread.id === null && thread.empty);
    follow(always);
  },
}, () => feed);

/** The pages, in the order of the menu and under its headings; those without a group are not in it. `admins`: for no one else. */
const PAGES = {
  inbox: { title: "Inbox", group: "Yours", sign: "inbox", page: lazily($("inbox-list"), (at) => new Inbox(at)) },
  schedules: { title: "Schedules", group: "Yours", sign: "clock", page: paged("schedules-list", (at) => new Schedules(at)) },
  memory: { title: "Memory", group: "Yours", sign: "bookmark", page: paged("memory-list", (at) => new Memory(at)) },
  connections: { title: "Connections", group: "Yours", sign: "key", page: paged("connections-list", (at) => new Connections(at)) },
  agents: { title: "Agents", group: "Yours", sign: "chip", page: paged("agents-list", (at) => new Agents(at)) },
  files: { title: "Files", group: "Yours", sign: "file", page: paged("files-list", (at) => new Files(at)) },
  people: { title: "People", group: "Team", sign: "people", page: paged("people-list", (at) => new People(at)) },
  rules: { title: "Rules and grants", label: "Rules", group: "Team", sign: "shield", page: paged("rules-list", (at) => new Rules(at, lookAgain)) },
  tools: { title: "Tools", group: "Team", sign: "tool", page: paged("tools-list", (at) => new Tools(at)) },
  usage: { title: "Usage", group: "Team", sign: "bars", page: paged("usage-list", (at) => new Usage(at)) },
  insights: { title: "Insights", group: "Team", sign: "chart", page: paged("insights-list", (at) => new Insights(at)) },
  audit: { title: "Audit log", label: "Audit", group: "Admin", sign: "scroll", admins: true, page: paged("audit-list", (at) => new Audit(at)) },
  features: { title: "What is on", group: "Admin", sign: "list", admins: true, page: paged("features-list", (at) => new Features(at)) },
  settings: { title: "Settings and doctor", label: "Settings", group: "Admin", sign: "gear", admins: true, page: paged("settings-list", (at) => new Settings(at)) },
  you: { title: "You", page: paged("you-list", (at) => new You(at, leave)) },
  closed: { title: "For admins", page: paged("closed-list", (at) => at.append(nothing("Only admins see this page", "Ask an admin, or go back to your conversations.")) ?? {}) },
  nowhere: { title: "Not found", page: paged("nowhere-list", (at) => at.append(nothing("There is no such page", "Choose one in the menu.")) ?? {}) },
};

/** A page in the common frame. */
function paged(id, make) {
  const column = h("div", { class: "column", id, hidden: true });
  $("page-scroll").append(column);
  return lazily(column, make);
}

/** A page in an element: made when it is opened for the first time. */
function lazily(element, make) {
  let made = null;
  return {
    show(id) {
      element.hidden = false;
      made ??= make(element);
      made.show?.(id);
    },
    hide() {
      element.hidden = true;
      made?.hide?.();
    },
    lookAgain: () => made?.lookAgain?.(),
  };
}

// Views

/** What the address names. */
function viewOf() {
  const [, view = "", rest = ""] = /^#?\/?([^/]*)\/?([^/]*)/.exec(location.hash) ?? [];
  return { view, rest };
}

function route() {
  const { view, rest } = viewOf();
  const id = decoded(rest);
  const conversation = view === "c" ? id : null;
  const opened = view === "" || conversation ? null : pageOf(view);
  if (route.shown !== location.hash && $("told").childElementCount) tellAbove("");
  const inChat = !opened;
  route.shown = location.hash;
  route.page = opened;
  $("chat").hidden = !inChat;
  $("inbox").hidden = opened !== "inbox";
  $("page").hidden = inChat || opened === "inbox";
  $("skip").setAttribute("href", inChat ? "#message" : "#title");
  $("skip").textContent = inChat ? "Skip to the message box" : "Skip to the content";
  closeSide();
  for (const [name, { page }] of Object.entries(PAGES)) if (name !== opened) page.hide();
  if (opened) showPage(opened, id);
  if (inChat) {
    if (conversation !== thread.id || !conversation) {
      remember(LAST, conversation ?? "");
      stuck = true;
      thread.show(conversation);
      $("message").value = typed.kept(draftKey()) ?? "";
      grow();
    }
    $("welcome").hidden = conversation !== null;
    if (!conversation) drawWelcome();
    gone = false;
    if (matchMedia("(pointer: fine)").matches) $("message").focus({ preventScroll: true });
  }
  drawSide();
}

/** Show a page, with what is so from when it is told of on. */
async function showPage(name, id) {
  const asked = location.hash;
  if (!feed.started) await feed.begun;
  if (route.shown === asked) PAGES[name].page.show(id);
}

const decoded = (text) => {
  try {
    return decodeURIComponent(text) || null;
  } catch {
    return null;
  }
};

function pageOf(view) {
  if (!Object.hasOwn(PAGES, view)) return "nowhere";
  return PAGES[view].admins && !me.admin ? "closed" : view;
}

// Kept while they are shown: a press that has begun on an element is lost where another takes its place.
const pageLinks = {};
const pageGroups = {};

function drawSide() {
  const waiting = proposals.waiting();
  const mine = waiting.filter((p) => p.may_decide).length;
  const inChat = !route.page;
  const open = Object.entries(PAGES).filter(([name, { group, admins }]) => group && (!admins || me.admin) && (name !== "insights" || me.insights) && (name !== "connections" || me.connections));
  const link = ([name, { title, label, sign }]) => {
    const to = (pageLinks[name] ??= h("a", { class: "side-link", id: `to-${name}`, href: `#/${name}` }, h("span", {}, icon(sign), label ?? title)));
    recount(to, name === "inbox" ? mine : 0);
    current(to, name === route.page);
    return to;
  };
  settle($("pages"), [...new Set(open.map(([, { group }]) => group))].map((group) => {
    const section = (pageGroups[group] ??= h("div", { role: "group", "aria-label": group }, h("h2", { class: "side-title" }, group)));
    settle(section, [section.firstElementChild, ...open.filter(([, page]) => page.group === group).map(link)]);
    return section;
  }));
  recount($("bar-inbox"), mine);
  current($("new"), inChat && !thread.id);
  const title = route.page ? PAGES[route.page].title : titleOf(thread.id);
  $("conversation-menu").hidden = !(inChat && thread.id);
  if ($("title").textContent !== title) $("title").textContent = title;
  const ofData = route.page || !thread.id ? "yes" : "no"; // what someone wrote first
  for (const each of [$("title"), document.querySelector("title")]) each.setAttribute("translate", ofData);
  document.title = `${mine ? `(${mine}) ` : ""}${title} · Nod`;
  $("list-title").hidden = $("find").hidden = !conversations.length && !$("find").value;
  redraw($("conversations"), ...conversations.map((each) => {
    const open = waiting.filter((p) => p.conversation_id === each.id).length;
    const item = h("a", { class: "side-link", href: `#/c/${encodeURIComponent(each.id)}` }, h("span", { class: "cut", ...DATA }, shown(each.title || "Untitled")),
      open ? h("span", { class: "count quiet", title: `${open} waiting` }, String(open), h("span", { class: "hidden" }, " waiting")) : null);
    current(item, inChat && each.id === thread.id);
    return h("li", {}, item);
  }));
}

/** A number in a bubble, with what it counts for who cannot see the bubble. */
const counted = (mine) => [h("span", { class: "count" }, String(mine), h("span", { class: "hidden" }, " waiting for you"))];

/** Show how many wait at the end of a link, and leave the rest of it alone. */
function recount(link, mine) {
  link.querySelector(".count")?.remove();
  if (mine) link.append(...counted(mine));
}

function current(element, on) {
  if (on) element.setAttribute("aria-current", "page");
  else element.removeAttribute("aria-current");
}

function titleOf(id) {
  return id ? conversations.find((each) => each.id === id)?.title || "Conversation" : "New conversation";
}

let older = null; // where the next page of conversations begins
const listAsked = new api.Newest();

async function listConversations(before = null) {
  const sought = new URLSearchParams(Object.entries({ q: $("find").value.trim(), before }).filter(([, value]) => value));
  try {
    const page = await listAsked.of(() => api.get(`api/conversations?${sought}`));
    if (!page) return;
    conversations = before ? [...conversations, ...page.conversations] : page.conversations;
    older = page.next;
    $("more-conversations").hidden = !older;
    drawSide();
  } catch {
    // the list comes with the next change
  }
}

function setUpConversations() {
  let typing = null;
  $("find").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => listConversations(), 250);
  });
  $("more-conversations").addEventListener("click", () => listConversations(older));
  const menu = $("conversation-menu");
  const item = (label, act) => h("button", { type: "button", class: "button", onclick: () => {
    menu.open = false;
    act().catch((error) => tellAbove(error.message));
  } }, label);
  menu.append(h("summary", { class: "icon-button" }, h("span", { "aria-hidden": "true" }, "⋯"), h("span", { class: "hidden" }, "This conversation")),
    h("div", { class: "menu-list" }, item("Rename", renaming), item("Export", exported), item("Delete", deleting)));
  foldsAway(menu);
}

const here = () => `api/conversations/${encodeURIComponent(thread.id)}`;

/** A word above the conversation that goes away with the next. */
function tellAbove(words, ...more) {
  $("told").replaceChildren(...(words ? [h("p", { class: "banner" }, h("span", {}, words), ...more)] : []));
  if (words) announce(words);
}

async function renaming() {
  const field = h("input", { type: "text", value: titleOf(thread.id), maxlength: 200, required: true, "aria-label": "Title of the conversation" });
  const kept = `title ${thread.id}`;
  typed.keepField(field, kept);
  const cancel = () => {
    typed.keep(kept, "");
    tellAbove("");
  };
  const form = h("form", { class: "renaming" }, field, h("button", { class: "button small primary" }, "Rename"), h("button", { type: "button", class: "button small", onclick: cancel }, "Cancel"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await api.patch(here(), { title: field.value.trim() });
      typed.keep(kept, "");
      tellAbove("");
      await listConversations();
    } catch (error) {
      tellAbove(error.message);
    }
  });
  $("told").replaceChildren(h("div", { class: "banner" }, form));
  field.select();
}

async function exported() {
  await api.download(`${here()}/export`, `conversation-${thread.id}.json`);
}

async function deleting() {
  const sure = h("button", { type: "button", class: "button small danger", onclick: async () => {
    try {
      await api.remove(here());
      tellAbove("");
      location.hash = "#/";
      await listConversations();
    } catch (error) {
      tellAbove(error.message);
    }
  } }, "Delete");
  tellAbove("Delete what was said here? Proposals and their audit stay.", sure, h("button", { type: "button", class: "button small", onclick: () => tellAbove("") }, "Cancel"));
  sure.focus();
}

function drawWelcome() {
  const examples = me.demo ? EXAMPLES : ANYWHERE;
  const say = (text) => h("button", { type: "button", class: "example", onclick: () => submit(text) }, text);
  $("welcome").replaceChildren(...[
    gone ? h("p", { class: "notice gone" }, icon("warning"), h("span", {}, GONE)) : null,
    h("h2", {}, "What would you like to get done?"),
    h("p", { class: "muted" }, "Nod looks things up right away. Before it changes anything, it shows you exactly what and waits for your approval."),
    h("div", { class: "examples" }, examples.map(say)),
  ].filter(Boolean));
}

// Writing

const draftKey = () => `message ${thread.id ?? ""}`;

function keepDraft() {
  typed.keep(draftKey(), $("message").value);
}

function grow() {
  const box = $("message");
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

function submit(text, files = []) {
  if (text.trim() || files.length) thread.send(text.trim(), files);
}

function setUpComposer() {
  const box = $("message");
  const attached = new Attached($("attached"), () => follow());
  attached.listen($("picked"), box, $("main"));
  $("attach").append(icon("clip"));
  $("attach").addEventListener("click", () => $("picked").click());
  recorder = new Recorder($("record"), [icon("microphone"), icon("square")], (file) => {
    attached.add([file]);
    $("send").focus();
  });
  recorder.offer(me.voice);
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit(box.value, attached.take());
    box.value = "";
    keepDraft();
    grow();
    box.focus();
  });
  box.addEventListener("input", () => {
    grow();
    keepDraft();
  });
  sendOnEnter(box, $("composer"));
  $("stop").addEventListener("click", () => thread.stop().catch((error) => announce(error.message)));
}

// Scrolling: follow what is written, unless someone scrolled up to read

let stuck = true;

function follow(always = false) {
  const scroll = $("scroll");
  if (always) stuck = true;
  if (thread.empty) scroll.scrollTop = 0; // the welcome is read from its beginning
  else if (stuck) {
    // cards that ask are read from the top
    const last = $("thread").lastElementChild;
    const tall = last?.querySelector(".card.proposed") && last.offsetHeight > scroll.clientHeight;
    scroll.scrollTop = tall ? last.getBoundingClientRect().top - scroll.getBoundingClientRect().top + scroll.scrollTop - 12 : scroll.scrollHeight;
  }
  $("latest").hidden = stuck;
}

function setUpScrolling() {
  const scroll = $("scroll");
  let before = 0;
  scroll.addEventListener("scroll", () => {
    // what grows below is no reason to stop following; going up is
    if (scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60) stuck = true;
    else if (scroll.scrollTop < before) stuck = false;
    before = scroll.scrollTop;
    $("latest").hidden = stuck;
  }, { passive: true });
  $("latest").addEventListener("click", () => follow(true));
  new ResizeObserver(() => {
    if (stuck && !$("thread").contains(document.activeElement)) follow();
  }).observe($("thread"));
}

// The side menu, a drawer on narrow screens

const narrow = matchMedia("(max-width: 800px)");

function openSide() {
  $("side").classList.add("open");
  $("side").inert = false;
  $("veil").hidden = false;
  $("main").inert = true;
  $("side-open").setAttribute("aria-expanded", "true");
  $("side-close").focus();
}

function closeSide(refocus = false) {
  $("side").classList.remove("open");
  $("side").inert = narrow.matches;
  $("veil").hidden = true;
  $("main").inert = false;
  $("side-open").setAttribute("aria-expanded", "false");
  if (refocus) $("side-open").focus();
}

function setUpSide() {
  $("side-open").append(icon("menu"));
  $("side-close").append(icon("cross"));
  $("side-open").addEventListener("click", openSide);
  $("side-close").addEventListener("click", () => closeSide(true));
  $("veil").addEventListener("click", () => closeSide(true));
  onEscape(document, () => $("side").classList.contains("open"), () => closeSide(true));
  $("side").addEventListener("click", (event) => event.target.closest("a") && closeSide());
  $("new").addEventListener("click", (event) => {
    if (location.hash !== "#/" && location.hash !== "") return;
    event.preventDefault(); // the hash would not change, so nothing would happen
    route();
  });
  narrow.addEventListener("change", () => closeSide());
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector($("skip").getAttribute("href")).focus();
  });
  $("sign-out").addEventListener("click", async () => {
    if (me.session) await api.remove("api/session").catch(() => {});
    await leave();
  });
}

/** The person signed out: nothing of theirs stays in this tab, nor in the others of this browser. */
async function leave() {
  await forgetDevice().catch(() => {});
  if (me.session) feed.tellSignedOut();
  api.signOut();
  forgetPerson();
  location.replace(location.pathname);
}

function forgetPerson() {
  typed.forget();
  remember(LAST, "");
}

let lost = null;

function connection(state) {
  clearTimeout(lost);
  if (state === "down") lost = setTimeout(() => told("Reconnecting…"), GRACE);
  else told("");
}

function told(words) {
  if ($("connection").textContent !== words) $("connection").textContent = words;
}

// Starting and signing in

function gate(...content) {
  $("app").hidden = true;
  $("gate").hidden = false;
  $("gate").replaceChildren(h("div", { class: "gate-card" }, h("h1", {}, "Nod"), ...content));
}

function askForToken(words) {
  feed?.end();
  api.only("", () => {}); // the person who signs in may be another
  if (document.querySelector("#token")) return;
  const field = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "token-fault" });
  const fault = h("p", { id: "token-fault", class: "fault", role: "alert" }, words);
  const button = h("button", { type: "submit", class: "button primary" }, "Sign in");
  const form = h("form", {}, h("label", { class: "label", for: "token" }, "Access token"), field,
    h("p", { class: "help" }, "It stays in this browser tab and is forgotten when you close it. If you know Nod from a chat, write /nod console there instead: it gives you a link."), fault, button);
  const other = h("p", { hidden: true });
  api.get("api/session").then(({ organisation }) => {
    if (!organisation) return;
    other.replaceChildren(h("a", { class: "button primary", href: "api/session/begin" }, "Sign in with ", data(organisation)));
    other.hidden = false;
  }).catch(() => {});
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fault.textContent = "";
    button.disabled = true;
    api.signIn(field.value);
    try {
      await api.get("api/me");
      location.reload();
    } catch (error) {
      api.signOut();
      fault.textContent = error.status === 401 ? "Unknown token. Check it and try again." : error.message;
      button.disabled = false;
      field.focus();
    }
  });
  gate(other, form);
  field.focus();
  // signed in again in another tab: what was typed here is still here
  document.addEventListener("visibilitychange", () => !document.hidden && api.get("api/me").then(() => location.reload(), () => {}));
}

// What holds for everything: that a demo model answers, and that all is paused

const meAsked = new api.Newest();

async function lookAgain() {
  if (document.hidden) return;
  try {
    const found = await meAsked.of(() => api.get("api/me"));
    if (!found) return;
    me = found;
    recorder?.offer(me.voice);
    drawBanners();
  } catch {
    // the next look tells
  }
}

function drawBanners() {
  const said = [];
  if (me.notice) said.push(h("p", { class: "banner" }, h("span", { ...DATA }, shown(me.notice))));
  if (me.paused) {
    const who = me.paused.by ? [" by ", data(me.paused.by)] : [];
    said.push(h("p", { class: "banner", role: "status" },
      h("span", {}, "Paused", ...who, " since ", stamp(me.paused.since), ". Nothing runs and timers are stopped."),
      me.admin ? h("a", { href: "#/rules" }, "Resume on the rules page") : null));
  }
  const print = said.map((each) => each.textContent).join("\n");
  if ($("banners").textContent === print.replaceAll("\n", "")) return;
  $("banners").replaceChildren(...said);
}

/** The page that a link from a chat leads to: one press, since a chat may open links by itself to preview them. */
function signIn(code) {
  const fault = h("p", { class: "fault", role: "alert" });
  const button = h("button", { type: "button", class: "button primary", onclick: async () => {
    button.disabled = true;
    fault.textContent = "";
    try {
      await api.post("api/session", { code });
      location.replace(location.pathname);
    } catch (error) {
      fault.textContent = error.message;
      button.disabled = false;
    }
  } }, "Sign in");
  gate(h("p", {}, "This link signs this browser in to Nod, for 30 days, as the person it was sent to."), fault, button);
  button.focus();
}

/** A page that opens behind another tab has its title, and does no more until it is looked at. */
async function awaitLook() {
  const { view } = viewOf();
  if (!document.hidden || !Object.hasOwn(PAGES, view) || isNotifying()) return;
  document.title = `${PAGES[view].title} · Nod`;
  await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

async function start() {
  const link = /^#\/sign-in\/([\w-]+)$/.exec(location.hash);
  if (link) {
    signIn(link[1]);
    return;
  }
  await awaitLook();
  api.whenLockedOut(() => askForToken(api.signedIn() ? "Your token is no longer valid." : ""));
  try {
    me = await api.get("api/me");
  } catch (error) {
    if (error.status === 401) return;
    gate(h("p", { role: "alert" }, error.message), h("button", { type: "button", class: "button", onclick: () => location.reload() }, "Try again"));
    return;
  }
  if (!typed.begin(me.account, me.accounts)) remember(LAST, "");
  api.only(me.account, () => location.reload());
  $("gate").hidden = true;
  $("app").hidden = false;
  $("who").replaceChildren(...(me.name === "you" ? ["Local session (no sign-in needed)"] : ["Signed in as ", data(me.name)]));
  $("model").replaceChildren(data(me.model), ...(me.demo ? [h("span", { class: "tag" }, "demo")] : []));
  Object.assign(proposals.me, { admin: me.admin, account: me.account, push: me.push });
  if (me.push) renew(me);
  drawBanners();
  setInterval(lookAgain, LOOK_AGAIN);
  $("sign-out").hidden = !api.signedIn() && !me.session;
  $("new").prepend(icon("plus"));
  $("bar-inbox").append(icon("inbox"), h("span", { class: "hidden" }, "Inbox"));
  setUpSide();
  setUpConversations();
  setUpComposer();
  setUpScrolling();
  addEventListener("storage", () => feed.look()); // notifications were turned on or off in another tab
  let drawing = null;
  proposals.listen(() => {
    clearTimeout(drawing);
    drawing = setTimeout(drawSide, 30);
  });
  if (!location.hash && recall(LAST)) history.replaceState(null, "", `#/c/${encodeURIComponent(recall(LAST))}`);
  addEventListener("hashchange", () => route.shown !== location.hash && route());
  const unseen = document.hidden;
  listen();
  route();
  listConversations();
  await feed.begun;
  await Promise.all([proposals.refreshWaiting(), ...(unseen ? [lookAgain(), listConversations()] : [])]).catch(() => {});
}

/** Listen to what happens, through whichever tab of this browser holds the stream. */
function listen() {
  feed = new Feed(nameOf(me.account, api.token()), {
    event: (event) => {
      if (event.type === "turn") thread.receive(event.conversation_id, event.event);
      if (event.type === "question_answered") proposals.putQuestions(event.proposal_id, event.questions);
      if (event.type !== "proposal_update") return;
      proposals.put(event.proposal);
      if (event.proposal.conversation_id) thread.receive(event.proposal.conversation_id, event);
      notifyOf(event.proposal);
    },
    opened: (returned) => {
      if (document.hidden) return;
      thread.missed();
      Promise.all([proposals.back(), lookAgain()]).catch(() => {});
      if (returned) listConversations();
      if (returned && route.page) PAGES[route.page].page.lookAgain?.();
    },
    state: connection,
    away: isNotifying,
    signedOut: () => {
      forgetPerson();
      askForToken("");
    },
  });
}

navigator.serviceWorker?.register("sw.js").catch(() => {}); // without it the browser's own page says that nothing answers
start();
