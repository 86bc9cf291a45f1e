// Draws boxes and links as SVG; pans and zooms without drawing anew; saves itself as SVG or PNG.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { select } from "d3-selection";
import { zoom as d3zoom, zoomIdentity } from "d3-zoom";
import { count, STATES } from "../format.js";
import { html, save } from "../parts.js";
import { cut } from "./model.js";

let worker = null, turns = 0;
const waiting = new Map();
function layout(boxes, links) {
  if (!worker) {
    worker = new Worker("/ui/js/graph/worker.js", { type: "module" });
    worker.onmessage = ({ data }) => { waiting.get(data.turn)?.(data); waiting.delete(data.turn); };
  }
  turns += 1;
  const turn = turns;
  worker.postMessage({ turn, boxes: boxes.map(({ id, width, height, frame }) => ({ id, width, height, frame })), links: links.map(({ source, target }) => ({ source, target })) });
  return new Promise((done) => waiting.set(turn, done));
}

// Places of boxes; they stay while the set of boxes and their sizes do, also when the moment changes.
export function usePlaces(boxes, links) {
  const key = useMemo(() => boxes.map((box) => `${box.id} ${box.width}x${box.height}`).sort().join("\n"), [boxes]);
  const [placed, set] = useState({ key: null, places: {}, width: 0, height: 0 });
  useEffect(() => {
    let gone = false;
    if (boxes.length) layout(boxes, links).then((data) => { if (!gone) set({ key, ...data }); });
    return () => { gone = true; };
  }, [key]);
  return { ...placed, current: placed.key === key };
}

const curve = (a, b) => {
  const x1 = a.x + a.width, y1 = a.y + a.height / 2, x2 = b.x, y2 = b.y + b.height / 2;
  if (x2 > x1) { const middle = (x1 + x2) / 2; return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`; }
  return `M${x1} ${y1}C${x1 + 50} ${y1 + 46} ${x2 - 50} ${y2 + 46} ${x2} ${y2}`;  // back: a job that writes what it reads
};

export function View({ boxes, links, placed, selected, start, on, marks, ghosts, onSelect, onCentre, onKey, fit }) {
  const svg = useRef(null), inner = useRef(null), zoomer = useRef(null);
  useEffect(() => {
    const root = select(svg.current);
    zoomer.current = d3zoom().scaleExtent([0.08, 3]).clickDistance(4).on("zoom", ({ transform }) => {
      inner.current.setAttribute("transform", transform);
      svg.current.classList.toggle("far", transform.k < 0.5);
      svg.current.classList.toggle("farther", transform.k < 0.25);
    });
    root.call(zoomer.current).on("dblclick.zoom", null);
    return () => root.on(".zoom", null);
  }, []);
  const whole = () => {
    const { clientWidth: w, clientHeight: ht } = svg.current;
    if (!w || !placed.width) return;
    const k = Math.min(1.15, w / (placed.width + 40), ht / (placed.height + 40));
    select(svg.current).call(zoomer.current.transform, zoomIdentity.translate((w - placed.width * k) / 2, (ht - placed.height * k) / 2).scale(k));
  };
  useEffect(() => { if (placed.width) whole(); }, [placed.key]);
  useEffect(() => { if (fit) fit.current = { whole, by: (k) => select(svg.current).call(zoomer.current.scaleBy, k), svg: svg.current, inner: inner.current, size: placed }; });
  const at = new Map(boxes.filter((box) => placed.places[box.id]).map((box) => [box.id, { ...box, ...placed.places[box.id] }]));
  const frames = framesOf([...at.values()]);
  const off = (id) => (on && !on.has(id) ? " off" : "");
  return html`<svg class="graph" ref=${svg} tabindex="0" role="application" aria-label=${`Lineage graph: ${count(boxes.length, "box", "boxes")}. Arrow keys walk, e expands, c collapses, p marks a path.`} onKeyDown=${onKey} onClick=${(e) => { if (e.target === svg.current) onSelect(null); }}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="context-stroke" /></marker></defs>
    <g ref=${inner}>
      ${frames.map((frame) => html`<g key=${frame.name}><rect class="frame" x=${frame.x} y=${frame.y} width=${frame.width} height=${frame.height} rx="10" /><text class="frame-name" x=${frame.x + 10} y=${frame.y + 13}>${cut(frame.name, Math.max(8, Math.floor(frame.width / 7)))}</text></g>`)}
      ${links.map((link) => {
        const a = at.get(link.source), b = at.get(link.target);
        if (!a || !b) return null;
        const d = curve(a, b), lit = on && on.has(link.source) && on.has(link.target);
        const kind = [link.running && "live", link.rule === "allSources" && "thin", link.old && "old", lit && "on", link.indirect && "indirect", on && !lit && "off", (ghosts.has(link.key) || ghosts.has(link.source) || ghosts.has(link.target)) && "ghost"].filter(Boolean).join(" ");
        return html`<g key=${link.key}><path class=${`edge ${kind}`} d=${d} marker-end="url(#arrow)"><title>${link.edges.length > 1 ? `${link.edges.length} edges` : `by ${link.rule}`}</title></path>
          ${link.running && links.length < 150 && html`<circle class="flow" r="3"><animateMotion dur="2.4s" repeatCount="indefinite" path=${d} /></circle>`}</g>`;
      })}
      ${[...at.values()].map((box) => html`<${Box} key=${box.id} box=${box} extra=${`${off(box.id)}${ghosts.has(box.id) ? " ghost" : ""}${selected === box.id ? " selected" : ""}${start === box.id ? " start" : ""} ${marks.get(box.id) || ""}`} onSelect=${onSelect} onCentre=${onCentre} />`)}
    </g></svg>`;
}

function Box({ box, extra, onSelect, onCentre }) {
  const [kind, word] = box.kind === "job" ? STATES[box.node.state] || ["", "recent"] : ["", box.sub];
  const tone = box.kind === "job" ? { run: "live", bad: "bad", warn: "warn" }[kind] || "" : "";
  const sign = { run: "● ", bad: "✕ ", warn: "◷ ", ok: "✓ " }[kind] || "";
  const name = box.node ? box.node.name : box.title;
  return html`<g class=${`node ${box.kind} ${tone} ${extra}`} transform=${`translate(${box.x} ${box.y})`} data-id=${box.id} onClick=${(e) => onSelect(box.id, e.shiftKey)} onDblClick=${() => onCentre(box.id)}>
    <title>${box.node ? `${box.kind} ${box.node.namespace} ${name}` : `${box.group}: ${box.sub}`}</title>
    <rect class="box" width=${box.width} height=${box.height} rx=${box.kind === "job" ? 23 : 6} />
    <text class="title" x=${box.kind === "job" ? 18 : 12} y="20">${box.title}</text>
    <text class=${`sub ${kind}`} x=${box.kind === "job" ? 18 : 12} y="36">${sign}${word}</text>
    ${(box.cols || []).slice(0, 10).map((one, i) => html`<text class="col" x="14" y=${54 + 16 * i}>${cut(one, 30)}</text>`)}
  </g>`;
}

function framesOf(boxes) {
  const frames = new Map();
  for (const box of boxes) {
    if (!box.frame) continue;
    const f = frames.get(box.frame) || { name: box.frame, x1: Infinity, y1: Infinity, x2: -Infinity, y2: -Infinity, n: 0 };
    f.x1 = Math.min(f.x1, box.x); f.y1 = Math.min(f.y1, box.y); f.x2 = Math.max(f.x2, box.x + box.width); f.y2 = Math.max(f.y2, box.y + box.height); f.n += 1;
    frames.set(box.frame, f);
  }
  const found = [...frames.values()].filter((f) => f.n > 1).map((f) => ({ name: f.name, x: f.x1 - 12, y: f.y1 - 20, width: f.x2 - f.x1 + 24, height: f.y2 - f.y1 + 32 }));
  const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
  const holds = (f) => boxes.every((box) => box.frame === f.name || box.kind === "job" || apart(f, box));
  return found.filter((f) => holds(f) && found.every((g) => g === f || apart(f, g)));
}

// The picture as a file: its rules are written into it, so that it looks the same elsewhere.
export function picture({ inner, size }) {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.selectorText?.startsWith(".graph")).map((rule) => rule.cssText.replaceAll(".graph ", "")).join("\n");
  const computed = getComputedStyle(document.documentElement);
  const names = ["--bg", "--panel", "--line", "--line-strong", "--ink", "--dim", "--accent", "--accent-soft", "--run", "--bad", "--warn", "--aligned", "--ok", "--focus"];
  const variables = `:root{${names.map((name) => `${name}:${computed.getPropertyValue(name)}`).join(";")}} text{font-family:system-ui,sans-serif}`;
  const copy = inner.cloneNode(true);
  copy.removeAttribute("transform");
  copy.querySelectorAll(".flow").forEach((one) => one.remove());
  const marker = inner.ownerSVGElement.querySelector("defs").outerHTML;
  const width = Math.ceil(size.width + 40), height = Math.ceil(size.height + 40);
  return { width, height, text: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 ${width} ${height}" width="${width}" height="${height}"><style>${variables}\n${rules}</style><rect x="-20" y="-20" width="100%" height="100%" fill="${computed.getPropertyValue("--bg")}"/>${marker}${new XMLSerializer().serializeToString(copy)}</svg>` };
}
export const saveSvg = (view) => save("lineage.svg", picture(view).text, "image/svg+xml");
export function savePng(view) {
  const { text, width, height } = picture(view);
  const image = new Image();
  image.onload = () => {
    const scale = Math.min(2, 8000 / Math.max(width, height));
    const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save("lineage.png", blob, "image/png"));
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
}
