// Lays a picture out, away from the page's own thread: boxes with sizes in, places out.
import { Graph, layout } from "../../vendor/dagre.mjs";

const MARGIN = 24;
const FRAME_PAD = 14;
const FRAME_TITLE = 24;
const LARGEST = { width: Infinity, height: 1300 }; // pixels: two windows high
const LARGEST_MAP = { width: 2600, height: 1300 };
const MOST_LINKS_A_BOX = 2; // with more, layers take seconds and are wider than any window
const LOOSE = { apart: 26, linesApart: 12 };
const DENSE = { apart: 10, linesApart: 4 };
const DENSEST = { apart: 6, linesApart: 2, marginy: 0 };
const PARTS_APART = 20;
const AROUND_PARTS = 12;
const HEIGHT_IN_FAN = 70; // pixels of a box of which many hang on one, with the lines beside it
const COLUMN_GAP = 72;
const GAP = { x: 44, y: 30 };
const SHAPE = 2.2; // how much wider than high rows are

// Around a node: one column a step, in the order of the answer, near their neighbours.
function byColumns(boxes, links) {
  const steps = new Map();
  for (const box of boxes) steps.set(box.step, [...(steps.get(box.step) || []), box]);
  const places = {};
  const middleOf = (id) => places[id] && places[id].y + places[id].height / 2;
  const near = (box) => {
    const ends = links.flatMap((link) => {
      if (link.source === box.id) return [middleOf(link.target)];
      return link.target === box.id ? [middleOf(link.source)] : [];
    });
    const known = ends.filter((y) => y !== undefined);
    return known.length ? known.reduce((sum, y) => sum + y, 0) / known.length : 0;
  };
  const outwards = [...steps.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
  for (const step of outwards) {
    const column = steps.get(step).map((box) => ({ box, rank: box.isRest ? Infinity : near(box) }));
    column.sort((a, b) => a.rank - b.rank || 0);
    const height = column.reduce((sum, { box }) => sum + box.height + 12, -12);
    let y = -height / 2;
    for (const { box } of column) {
      places[box.id] = { x: 0, y, width: box.width, height: box.height };
      y += box.height + 12;
    }
  }
  // Between two columns there is room for what stands beside a line.
  const stepOf = new Map(boxes.map((box) => [box.id, box.step]));
  const gapAfter = (step) => {
    const labels = links
      .filter((link) => Math.min(stepOf.get(link.source), stepOf.get(link.target)) === step)
      .map((link) => link.label.width + 32);
    return Math.max(COLUMN_GAP, ...labels);
  };
  let x = MARGIN,
    right = 0;
  for (const step of [...steps.keys()].sort((a, b) => a - b)) {
    // One width a column: a line that left a narrow box would run behind the wider ones.
    const width = Math.max(...steps.get(step).map((box) => box.width));
    for (const box of steps.get(step)) Object.assign(places[box.id], { x, width });
    right = x + width;
    x = right + gapAfter(step);
  }
  const top = Math.min(...Object.values(places).map((place) => place.y));
  for (const place of Object.values(places)) place.y += MARGIN - top;
  const bottom = Math.max(...Object.values(places).map((place) => place.y + place.height));
  return { places, frames: {}, routes: {}, width: right + MARGIN, height: bottom + MARGIN };
}

// The middle of the side of a box that faces a point.
function sideOf({ x, y, width, height }, point) {
  const isRight = point.x > x + width / 2;
  return { x: isRight ? x + width : x - 2, y: y + height / 2 };
}

// A whole graph: layers from left to right, boxes inside their frames. A map whose lines are too
// many for that has the strongest line of each box in layers; what is higher than the window is
// laid out by its parts, or in rows.
function byLayers(boxes, links, frames, room) {
  const isMap = boxes.some(({ isOfMap }) => isOfMap);
  if (!isMap || links.length <= MOST_LINKS_A_BOX * boxes.length) {
    const whole = inLayers(boxes, links, frames, LOOSE);
    if (fits(whole, isMap ? LARGEST_MAP : LARGEST)) return whole;
    if (!isMap) return byRows(boxes, frames, whole.places);
  }
  const strong = links.filter((link) => link.isStrongest);
  const layers = inLayers(boxes, strong, frames, DENSE);
  if (fits(layers, room)) return { ...layers, isDense: true };
  const isOneFrame = new Set(boxes.map((box) => box.frame)).size === 1;
  const parts = isOneFrame ? byParts(boxes, strong, frames, room) : null;
  if (parts && fits(parts, room)) return { ...parts, isDense: true };
  return { ...byRows(boxes, frames, layers.places), isDense: true, isInRows: true };
}

const fits = (one, most) => one.width <= most.width && one.height <= most.height;

// Boxes that lines join stand in layers of their own; the parts are stacked in columns that are as
// high as the window.
function byParts(boxes, links, frames, room) {
  const parts = partsOf(boxes, links).map((part) => {
    const ids = new Set(part.map((box) => box.id));
    // Numbers appear only with the box that is pointed at: between lines they need no height.
    const own = links
      .filter((link) => ids.has(link.source))
      .map((link) => ({ ...link, label: { width: link.label.width, height: 0 } }));
    const bare = part.map((box) => ({ ...box, frame: null }));
    return inLayers(bare, inColumns(own, room.height), [], DENSEST);
  });
  parts.sort((a, b) => b.width - a.width);
  const places = {},
    routes = {};
  const [above, below] = [FRAME_TITLE + AROUND_PARTS, FRAME_PAD + AROUND_PARTS];
  let [x, y, width, height] = [0, 0, 0, 0];
  for (const part of parts) {
    if (y > 0 && above + y + part.height + below > room.height) [x, y] = [width, 0];
    const [dx, dy] = [x, above + y];
    const moved = (point) => ({ ...point, x: point.x + dx, y: point.y + dy });
    for (const [id, place] of Object.entries(part.places)) places[id] = moved(place);
    for (const [key, { points, label }] of Object.entries(part.routes))
      routes[key] = { points: points.map(moved), label: label && moved(label) };
    width = Math.max(width, x + part.width);
    height = Math.max(height, above + y + part.height + below);
    y += part.height + PARTS_APART;
  }
  return { places, frames: aroundTheirBoxes(boxes, frames, places), routes, width, height };
}

// The boxes, apart where no line joins them.
function partsOf(boxes, links) {
  const partOf = new Map(boxes.map((box) => [box.id, [box]]));
  for (const { source, target } of links) {
    const [one, other] = [partOf.get(source), partOf.get(target)];
    if (one === other) continue;
    one.push(...other);
    for (const box of other) partOf.set(box.id, one);
  }
  return [...new Set(partOf.values())];
}

// The links with the numbers of layers that they span: what hangs on one box and is more than a
// column holds stands in several columns, and lines pass between the boxes of the nearer ones.
function inColumns(links, height) {
  const fans = new Map();
  for (const link of links) {
    for (const key of [`from ${link.source}`, `to ${link.target}`])
      fans.set(key, [...(fans.get(key) || []), link]);
  }
  const most = Math.max(1, Math.floor(height / HEIGHT_IN_FAN));
  const span = new Map();
  for (const fan of fans.values()) {
    const columns = Math.ceil(fan.length / most);
    if (columns > 1) fan.forEach((link, i) => span.set(link, 1 + (i % columns)));
  }
  return links.map((link) => ({ ...link, span: span.get(link) || 1 }));
}

// `apart`: pixels between boxes above each other; `linesApart`: between lines.
function inLayers(boxes, links, frames, { apart, linesApart, marginy = 40 }) {
  const graph = new Graph({ compound: true });
  graph.setGraph({
    rankdir: "LR",
    ranksep: 36,
    nodesep: apart,
    edgesep: linesApart,
    marginx: 20,
    marginy,
    ranker: "tight-tree",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const frame of frames) graph.setNode(frame.id, {});
  for (const frame of frames) if (frame.within) graph.setParent(frame.id, frame.within);
  for (const box of boxes) {
    graph.setNode(box.id, { width: box.width, height: box.height });
    if (box.frame) graph.setParent(box.id, box.frame);
  }
  for (const { source, target, label, span = 1 } of links)
    graph.setEdge(source, target, {
      ...(label.width ? { ...label, labelpos: "c" } : {}),
      minlen: span,
    });
  layout(graph);
  const places = {};
  for (const { id, width, height } of boxes) {
    const { x, y } = graph.node(id);
    places[id] = { x: x - width / 2, y: y - height / 2, width, height };
  }
  const routes = {};
  for (const { source, target } of links) {
    const { points, x, y } = graph.edge(source, target);
    const inner = points.slice(1, -1),
      from = places[source],
      to = places[target];
    const route = [sideOf(from, inner[0]), ...inner, sideOf(to, inner.at(-1))];
    routes[`${source} ${target}`] = { points: route, label: x === undefined ? null : { x, y } };
  }
  const { width, height } = graph.graph();
  return { places, frames: aroundTheirBoxes(boxes, frames, places), routes, width, height };
}

// The rectangle of each frame, around its boxes and the frames inside it.
function aroundTheirBoxes(boxes, frames, places) {
  const found = {};
  for (const frame of [...frames].reverse()) {
    const inside = boxes.filter((box) => box.frame === frame.id).map((box) => places[box.id]);
    for (const inner of frames)
      if (inner.within === frame.id && found[inner.id]) inside.push(found[inner.id]);
    if (!inside.length) continue;
    const x = Math.min(...inside.map((place) => place.x)) - FRAME_PAD;
    const y = Math.min(...inside.map((place) => place.y)) - FRAME_TITLE;
    const right = Math.max(...inside.map((place) => place.x + place.width)) + FRAME_PAD;
    const bottom = Math.max(...inside.map((place) => place.y + place.height)) + FRAME_PAD;
    found[frame.id] = { x, y, width: right - x, height: bottom - y };
  }
  return found;
}

// Boxes in rows, those of a frame together: for graphs whose layers need more than two windows.
function byRows(boxes, frames, order) {
  const places = {},
    frameSizes = {};
  const itemsOf = (frame) => [
    ...frames
      .filter((inner) => inner.within === frame)
      .map(({ id }) => ({ id, isFrame: true, ...pack(id) })),
    ...boxes.filter((box) => box.frame === frame).sort((a, b) => order[a.id].x - order[b.id].x),
  ];
  // Where each item of a frame goes, from the frame's corner, and how large they are together.
  function pack(frame) {
    const items = itemsOf(frame);
    const area = items.reduce((sum, item) => sum + (item.width + GAP.x) * (item.height + GAP.y), 0);
    const widest = Math.max(Math.sqrt(area * SHAPE), ...items.map((item) => item.width));
    let x = FRAME_PAD,
      y = FRAME_TITLE,
      rowHeight = 0,
      right = 0;
    const at = items.map((item) => {
      if (x > FRAME_PAD && x + item.width > widest + FRAME_PAD) {
        x = FRAME_PAD;
        y += rowHeight + GAP.y;
        rowHeight = 0;
      }
      const place = { item, x, y };
      x += item.width + GAP.x;
      rowHeight = Math.max(rowHeight, item.height);
      right = Math.max(right, x - GAP.x);
      return place;
    });
    return { at, width: right + FRAME_PAD, height: y + rowHeight + FRAME_PAD };
  }
  function place(packed, left, top) {
    for (const { item, x, y } of packed.at) {
      const at = { x: left + x, y: top + y, width: item.width, height: item.height };
      if (item.isFrame) place(item, at.x, at.y);
      (item.isFrame ? frameSizes : places)[item.id] = at;
    }
  }
  const whole = pack(null);
  place(whole, 0, 0);
  return {
    places,
    frames: frameSizes,
    routes: {},
    width: whole.width,
    height: whole.height,
  };
}

// `room`: the size of what the window shows at the smallest readable scale.
onmessage = ({ data: { turn, boxes, links, frames, room } }) => {
  const isAround = boxes[0].step !== undefined;
  const placed = isAround ? byColumns(boxes, links) : byLayers(boxes, links, frames, room);
  postMessage({ turn, ...placed });
};
