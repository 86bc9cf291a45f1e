// Lays a graph out, away from the page's own thread: boxes with sizes in, places out.
import { Graph, layout } from "../../vendor/dagre.mjs";

const FRAMES_UP_TO = 150;  // beyond, frames cost more time than they tell

onmessage = ({ data: { turn, boxes, links } }) => {
  const graph = new Graph({ compound: boxes.length <= FRAMES_UP_TO });
  graph.setGraph({ rankdir: "LR", ranksep: 40, nodesep: 14, marginx: 24, marginy: 24, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  const frames = new Set();
  for (const box of boxes) {
    graph.setNode(box.id, { width: box.width, height: box.height });
    if (box.frame && boxes.length <= FRAMES_UP_TO) {
      if (!frames.has(box.frame)) { frames.add(box.frame); graph.setNode(`frame ${box.frame}`, {}); }
      graph.setParent(box.id, `frame ${box.frame}`);
    }
  }
  for (const link of links) graph.setEdge(link.source, link.target);
  layout(graph);
  const places = {};
  for (const box of boxes) { const at = graph.node(box.id); places[box.id] = { x: at.x - at.width / 2, y: at.y - at.height / 2 }; }
  const { width, height } = graph.graph();
  postMessage({ turn, places, width, height });
};
