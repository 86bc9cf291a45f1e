// Draws boxes and links as SVG at a readable size; pans and zooms without drawing anew.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { select } from "d3-selection";
import { zoom as d3zoom, zoomIdentity } from "d3-zoom";
import { count, ruleName, STATES } from "../format.js";
import { html, save } from "../parts.js";
import { useBusy } from "../state.js";
import { fitted, jobsOf, LINE, neighboursOf, strongest } from "./model.js";

const SMALLEST_AT_START = 0.85; // the smallest text is 12 px
const LARGEST_AT_START = 1.1;
const NO_DETAILS_BELOW = 0.83; // below, a 12 px text is smaller than 10 px
const NO_TITLES_BELOW = 0.77;
const MARGIN = 24; // around the boxes of a layout
const BESIDE = 40; // how far a line runs beside boxes above each other
const OVERVIEW = { width: 168, height: 104 };
const KEYS =
  "Arrow keys walk, Enter or e opens, c closes a frame, p marks a path, 0 shows the start.";

let worker = null,
  turns = 0;
const waiting = new Map();
function layout(picture) {
  const { boxes, links, frames } = picture;
  if (!worker) {
    worker = new Worker("/ui/js/graph/worker.js", { type: "module" });
    worker.onmessage = ({ data }) => {
      waiting.get(data.turn)?.(data);
      waiting.delete(data.turn);
    };
  }
  turns += 1;
  const turn = turns;
  const sizes = boxes.map(({ id, width, height, frame, step, kind }) => ({
    id,
    width,
    height,
    frame,
    step,
    isRest: kind === "rest",
    isOfMap: kind === "place" || (kind === "rest" && step === undefined),
  }));
  const strong = strongest(picture);
  const ends = links.map(({ key, source, target, label }) => ({
    source,
    target,
    label: { width: label.width, height: label.height },
    isStrongest: strong.has(key),
  }));
  const svg = document.querySelector("svg.graph");
  worker.postMessage({
    turn,
    room: {
      width: svg.clientWidth / SMALLEST_AT_START,
      height: svg.clientHeight / SMALLEST_AT_START,
    },
    boxes: sizes,
    links: ends,
    frames: frames.map(({ id, within }) => ({ id, within })),
  });
  return new Promise((done) => waiting.set(turn, done));
}

// The picture with the places of its boxes; the one before stays until the new one is laid out.
export function usePlaces(picture) {
  const key = useMemo(
    () =>
      picture.boxes
        .map((box) => `${box.id} ${box.width}x${box.height} ${box.step}`)
        .sort()
        .join("\n"),
    [picture],
  );
  const [placed, set] = useState({
    key: null,
    places: {},
    frames: {},
    routes: {},
    width: 0,
    height: 0,
  });
  useEffect(() => {
    let gone = false;
    if (picture.boxes.length)
      layout(picture).then((data) => {
        if (!gone) set({ key, ...data });
      });
    return () => {
      gone = true;
    };
  }, [key]);
  useBusy(picture.boxes.length > 0 && placed.key !== key);
  return placed;
}

// A smooth line through the points of a route.
function smooth([first, ...rest]) {
  const last = rest.at(-1);
  const turns = rest
    .slice(0, -1)
    .map((p, i) => `Q${p.x} ${p.y} ${(p.x + rest[i + 1].x) / 2} ${(p.y + rest[i + 1].y) / 2}`);
  return `M${first.x} ${first.y}${turns.join("")}L${last.x} ${last.y}`;
}

// A line from box to box. One that leads back goes from left side to right side, so that its arrow
// head points where it leads; one between boxes above each other runs on their right.
function curve(a, b) {
  const x1 = a.x + a.width,
    y1 = a.y + a.height / 2,
    x2 = b.x,
    y2 = b.y + b.height / 2;
  if (x2 > x1) {
    const middle = (x1 + x2) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2 - 2} ${y2}`;
  }
  const left = b.x + b.width;
  if (left < a.x) {
    const middle = (left + a.x) / 2;
    return `M${a.x} ${y1}C${middle} ${y1} ${middle} ${y2} ${left + 2} ${y2}`;
  }
  const beside = Math.max(x1, left) + BESIDE;
  return `M${x1} ${y1}C${beside} ${y1} ${beside} ${y2} ${left + 2} ${y2}`;
}

function middleOf(a, b) {
  const y = (a.y + a.height / 2 + b.y + b.height / 2) / 2;
  if (b.x > a.x + a.width) return { x: (a.x + a.width + b.x) / 2, y };
  if (b.x + b.width < a.x) return { x: (b.x + b.width + a.x) / 2, y };
  return { x: Math.max(a.x + a.width, b.x + b.width) + 0.75 * BESIDE, y };
}

// Where a drawing begins in a window: in its middle, or, where it is larger, so that a point of it is
// near the middle and no side is empty.
function startOf(drawn, window, point = 0) {
  if (drawn <= window) return (window - drawn) / 2;
  return Math.min(0, Math.max(window - drawn, window / 2 - point));
}

export function View({
  picture,
  placed,
  isMap,
  selected,
  start,
  on,
  marks,
  ghosts,
  anchor,
  onSelect,
  onCentre,
  onFold,
  onKey,
  handle,
}) {
  const svg = useRef(null),
    inner = useRef(null),
    zoomer = useRef(null),
    overview = useRef(null),
    before = useRef(null);
  const [hovered, setHovered] = useState(null);
  const move = (x, y, k) =>
    select(svg.current).call(zoomer.current.transform, zoomIdentity.translate(x, y).scale(k));
  const current = () => svg.current.__zoom || zoomIdentity;
  // Read at the start of a move: read during it, the browser would lay out at each step.
  const size = useRef({ w: 0, h: 0 });
  const measure = () => {
    size.current = { w: svg.current.clientWidth, h: svg.current.clientHeight };
  };

  useEffect(() => {
    const root = select(svg.current);
    zoomer.current = d3zoom()
      .scaleExtent([0.2, 3])
      .clickDistance(4)
      .on("start", measure)
      .on("end", () => inner.current.classList.remove("moving"))
      .on("zoom", ({ transform, sourceEvent }) => {
        const { x, y, k } = transform;
        if (sourceEvent) inner.current.classList.add("moving");
        inner.current.style.transform = `translate(${x}px,${y}px) scale(${k})`;
        const isFar = k < NO_DETAILS_BELOW;
        inner.current.classList.toggle("far", isFar);
        if (isFar) inner.current.style.setProperty("--zoom", k);
        inner.current.classList.toggle("farther", k < NO_TITLES_BELOW);
        overview.current?.(transform);
      });
    root.call(zoomer.current).on("dblclick.zoom", null);
    return () => root.on(".zoom", null);
  }, []);

  // All of it where that is readable; else at a readable size around the start, or from its left
  // edge.
  const room = () => {
    measure();
    return size.current;
  };
  const home = () => {
    const { w, h } = room();
    if (!w || !placed.width) return;
    const fitting = Math.min(w / placed.width, h / placed.height);
    const k = Math.max(SMALLEST_AT_START, Math.min(LARGEST_AT_START, fitting));
    const at = placed.places[start];
    const x = startOf(placed.width * k, w, at && (at.x + at.width / 2) * k);
    const y = startOf(placed.height * k, h, at && (at.y + at.height / 2) * k);
    move(x, y, k);
  };
  const show = (id) => {
    const at = placed.places[id],
      { w, h } = room();
    if (!at || !w) return;
    const { x, y, k } = current(),
      pad = 24;
    const left = at.x * k + x,
      top = at.y * k + y,
      right = left + at.width * k,
      bottom = top + at.height * k;
    const dx = left < pad ? pad - left : right > w - pad ? w - pad - right : 0;
    const dy = top < pad ? pad - top : bottom > h - pad ? h - pad - bottom : 0;
    if (dx || dy) move(x + dx, y + dy, k);
  };

  // What was opened stays where it was clicked; a picture that fits is shown whole.
  useEffect(() => {
    if (!placed.width) return;
    const { w, h } = room();
    const old = before.current,
      now = placed.frames[anchor] || placed.places[anchor];
    const was = old?.frames[anchor] || old?.places[anchor];
    before.current = placed;
    const fits = placed.width * SMALLEST_AT_START <= w && placed.height * SMALLEST_AT_START <= h;
    if (fits || !was || !now) {
      home();
      return;
    }
    const { x, y, k } = current();
    move(
      Math.max(24 - now.x * k, Math.min(x + (was.x - now.x) * k, 24)),
      y + (was.y - now.y) * k,
      k,
    );
  }, [placed.key]);
  useEffect(() => {
    if (selected) show(selected);
  }, [selected, placed.key]);
  useEffect(() => {
    handle.current = {
      home,
      show,
      by: (k) => select(svg.current).call(zoomer.current.scaleBy, k),
      svg: svg.current,
      inner: inner.current,
      size: placed,
    };
  });

  const at = new Map(
    picture.boxes
      .filter((box) => placed.places[box.id])
      .map((box) => [box.id, { ...box, ...placed.places[box.id] }]),
  );
  // On a map everything is joined with everything: what is selected is shown like what is pointed at.
  const pointed = at.has(hovered) ? hovered : isMap && at.has(selected) ? selected : null;
  const lit = pointed ? neighboursOf(picture.links, pointed) : on;
  const isOff = (id) => lit && !lit.has(id);
  const ends = (link, id) => link.source === id || link.target === id;
  // Between a shown and a folded box: there are many, and each says little.
  const isSide = (link) =>
    (at.get(link.source).kind === "rest") !== (at.get(link.target).kind === "rest") &&
    !ends(link, start);
  const isLit = (link) =>
    pointed
      ? ends(link, pointed)
      : on && on.has(link.source) && on.has(link.target) && (!isSide(link) || ends(link, selected));
  const classOf = (id) =>
    [
      isOff(id) && "off",
      ghosts.has(id) && "ghost",
      selected === id && "selected",
      start === id && "start",
      marks.get(id),
    ]
      .filter(Boolean)
      .join(" ");
  const drawn = useMemo(() => (placed.isDense ? strongest(picture) : null), [placed, picture]);
  const lines = picture.links
    .filter((link) => at.has(link.source) && at.has(link.target))
    .filter((link) => !drawn || drawn.has(link.key) || isLit(link))
    .map((link) => {
      const isGhost = [link.key, link.source, link.target].some((id) => ghosts.has(id));
      const states = isLit(link) ? ["on"] : [lit && "off", isSide(link) && "side"];
      return {
        link,
        source: at.get(link.source),
        target: at.get(link.target),
        route: placed.routes[link.key],
        state: [...states, isGhost && "ghost"].filter(Boolean).join(" "),
      };
    });
  return html`<svg class=${`graph ${placed.isDense ? "dense" : ""} ${placed.isInRows ? "rows" : ""}`} ref=${svg} tabindex="0"
    role="application"
      aria-label=${`Lineage graph: ${count(picture.boxes.length, "box", "boxes")}. ${KEYS}`}
      onKeyDown=${onKey} onClick=${(event) => {
        if (event.target === svg.current) onSelect(null);
      }}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse"
      markerWidth="9" markerHeight="9" orient="auto-start-reverse">
      <path d="M0 0L8 4L0 8z" fill="context-stroke" /></marker></defs>
    <g ref=${inner}>
      ${picture.frames.map(
        (frame) =>
          html`<${Frame} key=${frame.id} frame=${frame} place=${placed.frames[frame.id]}
            onFold=${onFold} />`,
      )}
      ${lines.map((line) => html`<${Link} key=${line.link.key} ...${line} />`)}
      ${lines
        .filter((line) => line.link.label.width > 0)
        .map((line) => html`<${Label} key=${line.link.key} ...${line} pointed=${pointed} />`)}
      ${[...at.values()].map(
        (box) =>
          html`<${Box} key=${box.id} box=${box} extra=${classOf(box.id)} onSelect=${onSelect}
            onCentre=${onCentre} onHover=${setHovered} />`,
      )}
    </g></svg>
    <${Overview} placed=${placed} handle=${overview} size=${size} move=${move}
      current=${current} start=${start} />`;
}

// The name of a frame, and a button that closes it.
function Frame({ frame, place, onFold }) {
  if (!place) return null;
  const folds = onFold && frame.datasets !== undefined;
  const fold = () => onFold(frame.id);
  return html`<g class="frame-group">
    <rect class="frame" x=${place.x} y=${place.y} width=${place.width} height=${place.height}
      rx="10" />
    <g class=${folds ? "fold" : ""} onClick=${folds ? fold : undefined}>
    ${folds && html`<title>close ${frame.name}</title>`}
      <text class="frame-name" x=${place.x + 10} y=${place.y + 16}>
      ${folds ? "− " : ""}${fitted(
        frame.name,
        undefined,
        Math.max(60, place.width - 30),
      )}</text></g></g>`;
}

// The end of a line at the box that is not the one pointed at: there no two numbers meet.
function farEnd(near, far, width) {
  const y = far.y + far.height / 2;
  const isLeft = near.x + near.width < far.x;
  return { x: isLeft ? far.x - 14 - width / 2 : far.x + far.width + 14 + width / 2, y };
}

// The ends of a line; of one that leads both ways, the left one first.
const leftFirst = ({ link, source, target }) =>
  link.both && source.x > target.x ? [target, source] : [source, target];

function Link({ link, source, target, route, state }) {
  const edge = link.edges[0];
  const isOld = link.edges.every((one) => one.inLatest === false);
  const classes = [
    "edge",
    link.edges.some((one) => one.running) && "live",
    edge.rule === "allSources" && "thin",
    isOld && "old",
    state,
  ]
    .filter(Boolean)
    .join(" ");
  return html`<g class=${`link ${state}`}>
    <path class=${classes} style=${weightOf(link)} d=${
      route ? smooth(route.points) : curve(...leftFirst({ link, source, target }))
    } marker-end="url(#arrow)" marker-start=${link.both ? "url(#arrow)" : undefined}><title>
      ${aboutLink(link, isOld)}</title></path></g>`;
}

// Of a map: the more jobs, the thicker.
function weightOf(link) {
  const jobs = jobsOf(link);
  return jobs ? { "--weight": `${Math.min(4, 1.2 + Math.log2(jobs) * 0.4)}px` } : null;
}

// What stands beside a line. `pointed`: the box whose lines are told apart at their other ends.
function Label({ link, source, target, route, state, pointed }) {
  const { lines, width, height } = link.label;
  const { x, y } =
    pointed === link.source
      ? farEnd(source, target, width)
      : pointed === link.target
        ? farEnd(target, source, width)
        : route?.label || middleOf(...leftFirst({ link, source, target }));
  const first = y + 4 - ((lines.length - 1) * LINE) / 2;
  return html`<g class=${`link-label ${state}`}><rect class="behind-label" x=${x - width / 2}
      y=${y - height / 2} width=${width} height=${height} rx="4" />
    <text class="edge-label">${lines.map(
      (line, i) => html`<tspan x=${x} y=${first + i * LINE}>${line}</tspan>`,
    )}</text></g>`;
}

function aboutLink({ edges, label }, isOld) {
  const text = label.lines.join("");
  if (edges[0].jobs !== undefined) return `${text} jobs`;
  if (edges.some((edge) => edge.latestRun)) return `from an older run; ${text}`;
  if (isOld) return "from an older run: the latest run did not report it";
  const doubt = edges[0].rule === "allSources" ? ": no column lineage" : "";
  return `from ${ruleName(edges[0].rule)}${doubt}`;
}

function Box({ box, extra, onSelect, onCentre, onHover }) {
  const tone =
    box.kind === "job"
      ? { run: "live", bad: "bad", warn: "warn" }[(STATES[box.node.state] || [])[0]] || ""
      : "";
  const x = box.kind === "job" ? 16 : 12;
  const top = 20 + LINE * box.titles.length;
  const full = box.node.namespace ? `${box.node.namespace} ${box.node.name}` : box.node.name;
  return html`<g class=${`node ${box.kind} ${tone} ${extra}`}
    transform=${`translate(${box.x} ${box.y})`} data-id=${box.id}
      onClick=${(event) =>
        onSelect(
          box.id,
          event.shiftKey,
        )} onDblClick=${() => onCentre(box.id)} onPointerEnter=${() => onHover(box.id)}
          onPointerLeave=${() => onHover(null)}>
    <title>${box.kind === "place" ? `open ${full}` : full}</title>
    ${
      (box.kind === "place" || box.kind === "rest") &&
      html`<rect class="box behind" x="4" y="4" width=${box.width} height=${box.height} rx="6" />`
    }
    <rect class="box" width=${box.width} height=${box.height}
      rx=${box.kind === "job" ? 20 : 6} />
    ${box.titles.map(
      (line, i) => html`<text class="title" x=${x} y=${19 + LINE * i}>${line}</text>`,
    )}
    ${box.lines.map(
      (line, i) =>
        html`<text class="sub" x=${x} y=${top + LINE * i} xml:space="preserve">
          ${line.map(
            (part, n) => html`<tspan class=${part.tone}>
          ${n ? "  " : ""}${part.text}</tspan>`,
          )}</text>`,
    )}
    ${box.columns.map(
      (name, i) =>
        html`<text class="col" x="14" y=${top + 2 + LINE * (box.lines.length + i)}>${name}</text>`,
    )}
  </g>`;
}

// The whole drawing, small, with the part that the window shows; nothing where the window shows
// all.
function Overview({ placed, handle, size, move, current, start }) {
  const frame = useRef(null),
    root = useRef(null);
  const scale = placed.width
    ? Math.min(OVERVIEW.width / placed.width, OVERVIEW.height / placed.height)
    : 1;
  const update = ({ x, y, k }) => {
    const { w, h } = size.current;
    const edge = MARGIN * k;
    const isWhole =
      x >= -edge &&
      y >= -edge &&
      placed.width * k + x <= w + edge &&
      placed.height * k + y <= h + edge;
    root.current.style.display = isWhole || !placed.width ? "none" : "";
    for (const [name, value] of Object.entries({
      x: -x / k,
      y: -y / k,
      width: w / k,
      height: h / k,
    }))
      frame.current.setAttribute(name, value * scale);
  };
  useEffect(() => {
    handle.current = update;
    update(current());
  });
  const go = (event) => {
    const box = root.current.getBoundingClientRect(),
      { k } = current(),
      { w, h } = size.current;
    move(
      w / 2 - ((event.clientX - box.x) / scale) * k,
      h / 2 - ((event.clientY - box.y) / scale) * k,
      k,
    );
  };
  return html`<svg class=${`overview ${start ? "" : "low"}`} ref=${root} width=${Math.ceil(placed.width * scale)}
    height=${Math.ceil(placed.height * scale)} aria-hidden="true" onClick=${go} onPointerMove=${(
      event,
    ) => {
      if (event.buttons) go(event);
    }}>
    ${Object.entries(placed.places).map(
      ([id, one]) =>
        html`<rect class=${id === start ? "start" : ""} x=${one.x * scale} y=${one.y * scale}
          width=${one.width * scale} height=${one.height * scale} />`,
    )}
    <rect class="window" ref=${frame} /></svg>`;
}

// The picture as a file: its rules are written into it, so that it looks the same elsewhere.
export function picture({ inner, size }) {
  const rules = [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule instanceof CSSStyleRule && rule.selectorText.startsWith(".graph"))
    .map((rule) => rule.cssText.replaceAll(".graph ", ""))
    .join("\n");
  const computed = getComputedStyle(document.documentElement);
  const names = [
    "--bg",
    "--panel",
    "--line",
    "--line-strong",
    "--edge",
    "--ink",
    "--dim",
    "--accent",
    "--accent-soft",
    "--run",
    "--bad",
    "--warn",
    "--aligned",
    "--ok",
    "--focus",
  ];
  const colours = names.map((name) => `${name}:${computed.getPropertyValue(name)}`).join(";");
  const style = `:root{${colours}} text{font-family:system-ui,sans-serif}\n${rules}`;
  const background = computed.getPropertyValue("--bg");
  const copy = inner.cloneNode(true);
  copy.removeAttribute("style");
  copy.removeAttribute("class");
  const marker = inner.ownerSVGElement.querySelector("defs").outerHTML;
  const width = Math.ceil(size.width + 40),
    height = Math.ceil(size.height + 40);
  return {
    width,
    height,
    text: [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 ${width} ${height}"`,
      ` width="${width}" height="${height}"><style>${style}</style>`,
      `<rect x="-20" y="-20" width="100%" height="100%" fill="${background}"/>`,
      `${marker}${new XMLSerializer().serializeToString(copy)}</svg>`,
    ].join(""),
  };
}
export const saveSvg = (view) => save("lineage.svg", picture(view).text, "image/svg+xml");
export function savePng(view) {
  const { text, width, height } = picture(view);
  const image = new Image();
  image.onload = () => {
    const scale = Math.min(2, 8000 / Math.max(width, height));
    const canvas = Object.assign(document.createElement("canvas"), {
      width: width * scale,
      height: height * scale,
    });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save("lineage.png", blob, "image/png"));
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
}
