// The address holds all state; data is loaded again when something new was stored, and the old
// stays until the new is here.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const listeners = new Set();
export function go(url, replace = false) {
  const { pathname } = location;
  if (url !== location.pathname + location.search)
    history[replace ? "replaceState" : "pushState"](null, "", url);
  listeners.forEach((one) => one());
  if (location.pathname !== pathname) scrollTo(0, 0);
}
addEventListener("popstate", () => listeners.forEach((one) => one()));
addEventListener("click", (event) => {
  const { target } = event;
  const link = /** @type {HTMLAnchorElement} */ (
    target instanceof Element && target.closest("a[href]")
  );
  if (
    !link ||
    event.defaultPrevented ||
    event.button ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    link.target ||
    link.hasAttribute("download")
  )
    return;
  const url = new URL(link.href);
  const isHere = url.hash && url.pathname === location.pathname;
  if (url.origin !== location.origin || url.pathname.startsWith("/docs") || isHere) return;
  event.preventDefault();
  go(url.pathname + url.search + url.hash);
});

export function useAddress() {
  const [, again] = useState(0);
  useEffect(() => {
    const listener = () => again((n) => n + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return { path: location.pathname, params: new URLSearchParams(location.search) };
}

// The address with some parameters changed; null removes one.
export function withParams(changes, path = location.pathname) {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  const query = params.toString();
  return query ? `${path}?${query}` : path;
}

// Names the browser's tab after what a screen shows, once that is known.
export function useTitle(name) {
  useEffect(() => {
    if (name) document.title = `${name} · Strandline`;
  }, [name]);
}

// One stream for the page. It rests while the page is hidden, and backs off where the server is
// away.
const news = new Set();
let source = null,
  wait = 1000,
  timer = 0,
  pending = 0,
  connected = false;
const status = new Set();
function setConnected(now) {
  if (connected !== now) {
    connected = now;
    status.forEach((one) => one(now));
  }
}
function listen() {
  if (source || document.hidden) return;
  source = new EventSource("/api/v2/stream");
  source.addEventListener("change", () => {
    clearTimeout(pending);
    pending = setTimeout(() => news.forEach((one) => one()), 400);
  });
  source.onopen = () => {
    wait = 1000;
    setConnected(true);
  };
  source.onerror = () => {
    setConnected(false);
    if (source && source.readyState === EventSource.CLOSED) {
      source = null;
      clearTimeout(timer);
      timer = setTimeout(listen, wait);
      wait = Math.min(wait * 2, 60000);
    }
  };
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else {
    listen();
    news.forEach((one) => one());
  }
});
export function startListening() {
  listen();
}
export function useConnected() {
  const [now, set] = useState(connected);
  useEffect(() => {
    status.add(set);
    set(connected);
    return () => status.delete(set);
  }, []);
  return now;
}

// Marks the content as busy while something that the address asks for is not drawn yet, an older
// picture included.
let waits = 0;
function changeWaits(by) {
  waits += by;
  document.getElementById("content")?.setAttribute("aria-busy", String(waits > 0));
}
export function useBusy(isBusy) {
  useLayoutEffect(() => {
    if (!isBusy) return undefined;
    changeWaits(1);
    return () => changeWaits(-1);
  }, [isBusy]);
}

// {data, error}: what `load(signal)` gives for these keys; `fresh`: also whenever something new is
// stored.
// Until the data of new keys is here, that of the old keys stays.
export function useData(load, keys, fresh = true) {
  const [state, set] = useState({ data: null, error: null, keys: null });
  useBusy(state.keys !== JSON.stringify(keys));
  const [turn, again] = useState(0);
  const latest = useRef(null);
  useEffect(() => {
    if (!fresh) return undefined;
    const listener = () => again((n) => n + 1);
    news.add(listener);
    return () => news.delete(listener);
  }, [fresh]);
  useEffect(() => {
    const abort = new AbortController();
    const key = JSON.stringify(keys);
    latest.current = key;
    Promise.resolve()
      .then(() => load(abort.signal))
      .then(
        (data) => {
          if (latest.current === key) set({ data, error: null, keys: key });
        },
        (error) => {
          if (error.name !== "AbortError" && latest.current === key)
            set((old) => ({ data: old.keys === key ? old.data : null, error, keys: key }));
        },
      );
    return () => abort.abort();
  }, [...keys, turn]);
  return { ...state, reload: () => again((n) => n + 1) };
}
