// The frame around all screens: search, navigation, keys, theme, login.
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { address, get, health, session } from "./api.js";
import { html, onToast } from "./parts.js";
import { go, startListening, useAddress, useConnected } from "./state.js";
import { Now } from "./pages/now.js";
import { Graph } from "./pages/graph.js";
import { Table, Tables } from "./pages/table.js";
import { Group, Groups } from "./pages/group.js";
import { Compare } from "./pages/compare.js";
import { Impact } from "./pages/impact.js";
import { Job, Jobs } from "./pages/jobs.js";
import { Run, Runs } from "./pages/runs.js";
import { Events, Search, Trouble } from "./pages/lists.js";
import { Words } from "./pages/words.js";

const SCREENS = {
  "/": [Now, "Now"],
  "/graph": [Graph, "Graph"],
  "/groups": [Groups, "Consistency"],
  "/group": [Group, "Consistency"],
  "/compare": [Compare, "Consistency"],
  "/tables": [Tables, "Tables"],
  "/table": [Table, "Tables"],
  "/impact": [Impact, "Tables"],
  "/jobs": [Jobs, "Jobs"],
  "/job": [Job, "Jobs"],
  "/runs": [Runs, "Runs"],
  "/run": [Run, "Runs"],
  "/events": [Events, "Events"],
  "/trouble": [Trouble, "Rejected"],
  "/search": [Search, ""],
  "/words": [Words, "Words"],
  "/login": [Login, ""],
};
const MENU = [
  ["/", "Now"],
  ["/graph", "Graph"],
  ["/groups", "Consistency"],
  ["/tables", "Tables"],
  ["/jobs", "Jobs"],
  ["/runs", "Runs"],
  ["/events", "Events"],
  ["/trouble", "Rejected"],
  ["/words", "Words"],
];

function App() {
  const { path, params } = useAddress();
  const [toast, setToast] = useState("");
  const [menu, setMenu] = useState(false);
  const content = useRef(null);
  const [Screen, current] = SCREENS[path] || [NotFound, ""];
  useEffect(() => {
    let timer;
    onToast((text) => {
      setToast(text);
      clearTimeout(timer);
      timer = setTimeout(() => setToast(""), 2500);
    });
    const login = () => {
      if (location.pathname !== "/login")
        go(address("/login", { next: location.pathname + location.search }), true);
    };
    addEventListener("strandline:login", login);
    addEventListener("keydown", onKey);
    session().then(
      (now) => {
        if (now.keyNeeded) login();
        else startListening();
      },
      () => startListening(),
    );
  }, []);
  // Before a screen names the tab after what it shows.
  useLayoutEffect(() => {
    setMenu(false);
    document.title = `${current ? `${current} · ` : ""}Strandline`;
  }, [path]);
  return html`<div class="shell">
    <header>
      <button class="icon burger" aria-label="Menu" aria-expanded=${menu}
        onClick=${() => setMenu(!menu)}>☰</button>
      <a class="brand" href="/" aria-label="Strandline">
        <img src="/ui/icon.svg" alt="" /><span>Strandline</span></a>
      <${SearchBox} at=${params.get("q") || ""} />
      <${Label} /><${Live} /><${Theme} />
    </header>
    <nav aria-label="Main" class=${menu ? "open" : ""}>
    ${MENU.map(
      ([url, name]) =>
        html`<a href=${url} aria-current=${name === current ? "page" : undefined}>${name}</a>`,
    )}
      <a href="/docs">API</a></nav>
    <main id="content" tabindex="-1" ref=${content} class=${path === "/graph" ? "wide" : ""}>
    <${Screen} params=${params} key=${path} /></main>
    ${toast && html`<div class="toast" role="status">${toast}</div>`}
  </div>`;
}

function onKey(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("search")?.focus();
  }
  if (event.key === "Escape" && typing) event.target.blur();
}

function SearchBox({ at }) {
  const [text, setText] = useState(at);
  const [found, setFound] = useState([]);
  useEffect(() => {
    if (text.trim().length < 2) {
      setFound([]);
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        get("/search", { q: text.trim(), limit: 8 }, abort.signal).then(
          (page) => setFound(page.items),
          () => setFound([]),
        ),
      180,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const submit = (event) => {
    event.preventDefault();
    go(address("/search", { q: text }));
    /** @type {HTMLElement} */ (document.activeElement).blur();
  };
  return html`<form class="searchbox" role="search" onSubmit=${submit}>
    <input id="search" type="search" list="found" placeholder="Search tables, columns, jobs, ids"
      aria-label="Search" autocomplete="off" value=${text}
        onInput=${(e) => setText(e.target.value)} /><kbd>/</kbd>
    <datalist id="found">
    ${found.map(
      (one) => html`<option value=${one.matched === "application" ? one.label : one.name}>
    ${one.type === "dataset" ? "table" : one.type} in ${one.namespace}</option>`,
    )}</datalist></form>`;
}

// The label that the operator gave to this collector, as "Recorded demo".
function Label() {
  const [label, setLabel] = useState("");
  useEffect(() => {
    health().then(
      (answer) => setLabel(answer.label || ""),
      () => setLabel(""),
    );
  }, []);
  return label && html`<span class="chip label" title=${label}>${label}</span>`;
}

function Live() {
  const connected = useConnected();
  return html`<span class="live" role="status" title=${
    connected ? "the page changes by itself" : "no live updates now; the page tries again"
  }><i class=${`dot ${connected ? "run" : "off"}`}></i><span>
    ${connected ? "live" : "not live"}</span></span>`;
}

const SYSTEM_DARK = matchMedia("(prefers-color-scheme: dark)");

function Theme() {
  const [theme, setTheme] = useState(() => {
    try {
      return localStorage.getItem("theme") || "";
    } catch {
      return "";
    }
  });
  const [prefersDark, setPrefersDark] = useState(SYSTEM_DARK.matches);
  const dark = theme ? theme === "dark" : prefersDark;
  useEffect(() => {
    const changed = () => setPrefersDark(SYSTEM_DARK.matches);
    SYSTEM_DARK.addEventListener("change", changed);
    return () => SYSTEM_DARK.removeEventListener("change", changed);
  }, []);
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [dark]);
  useEffect(() => {
    try {
      localStorage.setItem("theme", theme);
    } catch {
      /* private windows keep nothing */
    }
  }, [theme]);
  return html`<button class="icon" aria-label=${dark ? "Light theme" : "Dark theme"}
    title=${dark ? "Light theme" : "Dark theme"} onClick=${() => setTheme(dark ? "light" : "dark")}>
    ${dark ? "☀" : "☾"}</button>`;
}

// An address of this server; the first screen where it is another's or none.
function ownAddress(text) {
  try {
    const url = new URL(text, location.origin);
    return url.origin === location.origin ? url.href : "/";
  } catch {
    return "/";
  }
}

function Login({ params }) {
  const [error, setError] = useState("");
  const next = ownAddress(params.get("next") || "/");
  const submit = (event) => {
    event.preventDefault();
    session("POST", String(new FormData(event.target).get("key")).trim()).then(
      () => location.assign(next),
      (why) => setError(why.message),
    );
  };
  return html`<form class="login panel pad" onSubmit=${submit}>
    <h1>This collector asks for an API key</h1>
    <p class="dim">Whoever runs it makes one with <code>strandline keys add NAME --scope
    read --namespace PATTERN</code>. The key stays in a cookie that no script can read.</p>
    <label for="key">API key</label>
    <input id="key" name="key" type="password" autocomplete="current-password" required />
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <button class="primary">Open</button></form>`;
}

// An address that the page does not have: what its last part may name, and all screens.
function NotFound() {
  const path = decoded(location.pathname);
  const name = path.split("/").filter(Boolean).at(-1);
  const screen = path.replace(/\/+$/, "");
  return html`<h1>There is no page ${path}</h1>
    <p class="sentence">${
      SCREENS[screen]
        ? html`Did you mean <a href=${screen + location.search}>${screen}</a>?`
        : html`<a href=${address("/search", { q: name })}>Search for “${name}”</a>, or open one of
            these:`
    }</p>
    <p class="row">${MENU.map(
      ([url, label]) => html`<a class="button" href=${url}>${label}</a>`,
    )}</p>
    <p class="dim">The paths of the API are at <a href="/docs">/docs</a>.</p>`;
}

function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

render(html`<${App} />`, document.getElementById("app"));
