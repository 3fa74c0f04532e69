// Keeps the page's own files, so that it reloads without a network. What the network has comes first: a new build is never hidden.

// ci/playground.sh fills in both: a digest of all files, and their names.
const VERSION = "@VERSION@";
const FILES = "@FILES@".split(" ");

const OURS = `tidegate-playground ${self.registration.scope} `;
const CACHE = OURS + VERSION;

self.addEventListener("install", event => {
  self.skipWaiting();
  // Past the browser's own cache, which may have files of the build before.
  const requests = ["./", ...FILES].map(name => new Request(name, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then(cache => cache.addAll(requests)));
});

self.addEventListener("activate", event => {
  const clear = async () => {
    const old = (await caches.keys()).filter(name => name.startsWith(OURS) && name !== CACHE);
    await Promise.all(old.map(name => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clear());
});

self.addEventListener("fetch", event => {
  const kept = async () => (await (await caches.open(CACHE)).match(event.request)) ?? Response.error();
  event.respondWith(fetch(event.request).catch(kept));
});
