// Notifications on devices: this browser's subscription, the list of one's devices, quiet hours. It decides nothing.

import { get, patch, post, put, remove } from "./api.js";
import { data, h, recall, remember } from "./dom.js";
import { ago } from "./times.js";

const SUBSCRIBED = "nod.push"; // the account that this browser is notified for
const ID_CHARS = 32;
const NO_BROWSER = "This browser can't be notified. On an iPhone or iPad, add Nod to the home screen first, and open it there.";
const DENIED = "This browser blocks notifications of Nod. Allow them in its settings for this site, then come back.";

/** Whether this browser knows Web Push; over plain HTTP only this machine does. */
export const canPush = () => "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;

/** Whether this browser was subscribed for an account, as far as it knows itself. */
export const isSubscribed = (account) => canPush() && Notification.permission === "granted" && recall(SUBSCRIBED, true) === account;

const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));

async function idOf(subscription) {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return [...new Uint8Array(hash)].map((each) => each.toString(16).padStart(2, "0")).join("").slice(0, ID_CHARS);
}

/** The service worker, once it runs. */
async function worker() {
  await navigator.serviceWorker.register("sw.js");
  return navigator.serviceWorker.ready;
}

const current = async () => (await worker()).pushManager.getSubscription();

/** The name of this device in its list. */
function nameOfDevice() {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrome\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : "Browser";
  const system = /iPhone/.test(agent) ? "iPhone" : /iPad/.test(agent) ? "iPad" : /Android/.test(agent) ? "Android" : /Mac OS X/.test(agent) ? "macOS" : /Windows/.test(agent) ? "Windows" : /Linux/.test(agent) ? "Linux" : "";
  return system ? `${browser} on ${system}` : browser;
}

async function subscribe(key) {
  const { pushManager } = await worker();
  const wanted = { userVisibleOnly: true, applicationServerKey: bytesOf(key) };
  try {
    return await pushManager.subscribe(wanted);
  } catch (error) {
    const old = await pushManager.getSubscription(); // with another key of Nod's
    if (!old) throw error;
    await old.unsubscribe();
    return pushManager.subscribe(wanted);
  }
}

async function tell(subscription, detailed) {
  const { endpoint, keys } = subscription.toJSON();
  return post("api/push/devices", { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth }, name: nameOfDevice(), detailed });
}

/** A subscription ended with an earlier session: tell it again for the person who signed in here again. */
export async function renew({ account, session }) {
  if (!isSubscribed(account)) return;
  try {
    const [subscription, { on, key, devices }] = await Promise.all([current(), get("api/push")]);
    if (!on || !subscription) return;
    const id = await idOf(subscription);
    const known = devices.find((each) => each.id === id && each.mine);
    if (!known) await tell(await subscribe(key), false);
    else if (!session) await tell(subscription, known.detailed); // it ends by time alone
  } catch {
    // the list of devices says what is wrong
  }
}

/** No more in this browser: its subscription ends, and what is shown goes. */
export async function forgetDevice() {
  remember(SUBSCRIBED, "", true);
  if (!canPush()) return;
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  await subscription?.unsubscribe();
  for (const each of (await registration?.getNotifications()) ?? []) each.close();
}

/** The part of a page about one's devices. `page` is the page, `account` whose it is. */
export class Devices {
  constructor(page) {
    this.page = page;
    this.element = h("section", { class: "page", "aria-label": "Notifications" });
  }

  /** What `draw` shows; null where it is off. */
  async load({ account, push }) {
    if (!push) return null;
    const [found, subscription] = await Promise.all([get("api/push"), canPush() && isSubscribed(account) ? current() : null]);
    return { ...found, here: subscription ? await idOf(subscription) : null };
  }

  draw({ account, admin }, found) {
    this.account = account;
    if (!found) {
      this.element.replaceChildren(...(admin ? [h("h2", { class: "section" }, "Notifications"),
        h("p", { class: "help" }, "Notifications on phones and desktops are off. ", h("code", { translate: "no" }, "nod push keys"), " prints the key that turns them on.")] : []));
      return;
    }
    const { here } = found;
    const mine = found.devices.filter((each) => each.mine);
    const others = found.devices.filter((each) => !each.mine);
    const listed = mine.some((each) => each.id === here);
    this.element.replaceChildren(h("h2", { class: "section" }, "Notifications"),
      h("p", { class: "help" }, "Your devices are told when a card waits for you: the tool and the place. To decide, open Nod. A device is told no more once its browser is signed out."),
      ...(listed ? [] : [this.offer(found)]), ...mine.map((each) => this.device(each, here)), this.quiet(found.quiet),
      ...(others.length ? [h("h2", { class: "section" }, "Everyone else's devices"), ...others.map((each) => this.device(each, here))] : []));
  }

  offer({ key }) {
    if (!canPush()) return h("p", { class: "help" }, NO_BROWSER);
    if (Notification.permission === "denied") return h("p", { class: "help" }, DENIED);
    const button = h("button", { type: "button", class: "button primary", onclick: () => this.page.doing(() => this.begin(key)) }, "Notify this device");
    return h("div", { class: "buttons" }, button);
  }

  async begin(key) {
    if ((await Notification.requestPermission()) !== "granted") throw new Error("This browser was not allowed to notify you.");
    let subscription;
    try {
      subscription = await subscribe(key);
    } catch {
      throw new Error("This browser could not reach its push service. Try again, or use another browser.");
    }
    await tell(subscription, false);
    remember(SUBSCRIBED, this.account, true);
    return { text: "This device is notified from now on." };
  }

  device(each, here) {
    const { id, name, host, owner_name: owner, detailed, created_at: created, sent_at: sent, fault, mine } = each;
    const place = h("div", { class: "buttons" });
    const facts = [["Since ", ago(created)], sent ? ["Last told ", ago(sent)] : ["Not told yet"], [data(host)]];
    this.actions(place, each, here);
    const more = h("input", { type: "checkbox", checked: detailed, onchange: () => this.change(id, more) });
    return h("article", { class: "card person", "aria-label": `Device ${name}` },
      h("p", {}, data(name), mine ? null : [" of ", data(owner)], id === here ? [" ", h("span", { class: "state good" }, "This device")] : null, fault ? [" ", h("span", { class: "state bad" }, "Not reached")] : null),
      h("p", { class: "help" }, facts.flatMap((part, index) => (index ? [" · ", ...part] : part))),
      fault ? h("p", { class: "help" }, "The push service said: ", data(fault), ".") : null,
      mine ? h("label", { class: "every" }, more, h("span", {}, "Show what is asked, and by whom")) : null, place);
  }

  async change(id, box) {
    try {
      await patch(`api/push/devices/${id}`, { detailed: box.checked });
    } catch (error) {
      box.checked = !box.checked;
      this.page.say(error.message, true);
    }
  }

  actions(place, each, here) {
    const { id, name, mine } = each;
    const test = h("button", { type: "button", class: "button small", "aria-label": `Send a test to ${name}`, onclick: () => this.page.doing(() => post(`api/push/devices/${id}/test`, {})) }, "Send a test");
    const end = h("button", { type: "button", class: "button small", "aria-label": `Remove ${name}`, onclick: () => this.confirm(place, each, here) }, "Remove");
    place.replaceChildren(...(mine ? [test, end] : [end]));
  }

  confirm(place, each, here) {
    const gone = async () => {
      const done = await remove(`api/push/devices/${each.id}`);
      if (each.id === here) await forgetDevice();
      return done;
    };
    const sure = h("button", { type: "button", class: "button small danger", onclick: () => this.page.doing(gone) }, "Remove");
    place.replaceChildren(sure, h("button", { type: "button", class: "button small", onclick: () => this.actions(place, each, here) }, "Keep"));
    sure.focus();
  }

  quiet(hours) {
    const time = (label, value) => h("input", { type: "time", required: true, value, "aria-label": label });
    const begins = time("Quiet from", hours?.begins ?? "22:00");
    const ends = time("Quiet until", hours?.ends ?? "07:00");
    const zone = hours?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    const form = h("form", { class: "hours" }, begins, h("span", { class: "muted" }, "to"), ends, h("button", { class: "button small" }, hours ? "Change" : "Set quiet hours"),
      hours ? h("button", { type: "button", class: "button small", onclick: () => this.page.doing(() => remove("api/push/quiet")) }, "End quiet hours") : null);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.page.doing(() => put("api/push/quiet", { begins: begins.value, ends: ends.value, zone: Intl.DateTimeFormat().resolvedOptions().timeZone }));
    });
    return h("div", {}, h("h3", { class: "section" }, "Quiet hours"),
      h("p", { class: "help" }, hours ? "Nothing new is shown in these hours, by the clock of " : "Choose hours in which nothing new is shown, by the clock of ", data(zone), ". What still waits then comes when they are over."), form);
  }
}
