// When Nod can't be reached, a page says so in place of the browser's own. Only that page is kept: no answer of
// the API, and nothing of the console, so that what is shown is always what is so. What is pushed is shown as a
// notification; nothing is decided here, and a tap opens a page of Nod, behind its sign-in.

const KEPT = "nod-offline-1";
const PAGE = "static/offline.html";
const PARTS = [PAGE, "static/offline.css", "static/offline.js", "static/icon.svg"];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(PARTS)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name !== KEPT).map((name) => caches.delete(name))));
  event.waitUntil(old.then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const part = PARTS.some((each) => new URL(each, registration.scope).href === url);
  if (method !== "GET" || (mode !== "navigate" && !part)) return;
  const kept = () => caches.open(KEPT).then((cache) => cache.match(part ? url : new URL(PAGE, registration.scope).href));
  event.respondWith(fetch(event.request).catch(async (error) => {
    const found = await kept();
    if (found) return found;
    throw error;
  }));
});

const PLAIN = /^[\w-]{1,64}$/;
const BY_ITSELF = "nod";
const isPlain = (text) => typeof text === "string" && PLAIN.test(text);

/** What was pushed, as far as it is of the form that Nod sends. */
function readPush(data) {
  try {
    const told = data.json();
    return { ...told, tag: isPlain(told.tag) ? told.tag : BY_ITSELF, id: isPlain(told.id) ? told.id : "" };
  } catch {
    return { tag: BY_ITSELF, id: "", title: "Nod", body: "Open Nod to see what waits." };
  }
}

/** Close the notification of a card. Browsers want each push to show something, so it is replaced without a sound first. */
async function closeShown(tag) {
  await registration.showNotification("Decided", { tag, silent: true, icon: "static/icon-192.png" });
  for (const each of await registration.getNotifications({ tag })) each.close();
}

async function showPush({ tag, id, title, body, at, again, close }) {
  if (close) return closeShown(tag);
  const words = { body: String(body ?? ""), tag, renotify: Boolean(again), icon: "static/icon-192.png", data: id };
  return registration.showNotification(String(title ?? "Nod"), at ? { ...words, timestamp: at } : words);
}

/** Open a card in a window of Nod that there is, else in a new one. */
async function openCard(id) {
  const address = new URL(id ? `#/inbox/${id}` : "#/inbox", registration.scope).href;
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find((each) => each.url.startsWith(registration.scope));
  if (!there) return clients.openWindow(address);
  await there.focus().catch(() => {}); // not every browser lets it
  return there.navigate(address);
}

/** The browser has another subscription now: tell Nod, as the person who is signed in here. */
async function tellRenewed({ oldSubscription, newSubscription }) {
  const made = newSubscription ?? (oldSubscription && await registration.pushManager.subscribe(oldSubscription.options));
  if (!made) return;
  const { endpoint, keys } = made.toJSON();
  const body = JSON.stringify({ endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth }, name: "Renewed by its browser" });
  await fetch(new URL("api/push/devices", registration.scope), { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body });
}

addEventListener("push", (event) => event.waitUntil(showPush(readPush(event.data))));
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openCard(isPlain(event.notification.data) ? event.notification.data : ""));
});
addEventListener("pushsubscriptionchange", (event) => event.waitUntil(tellRenewed(event)));
