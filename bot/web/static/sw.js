// When Nod can't be reached, a page says so in place of the browser's own. Only that page is kept: no answer of
// the API, and nothing of the console, so that what is shown is always what is so.

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
