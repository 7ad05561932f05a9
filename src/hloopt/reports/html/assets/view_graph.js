// Layered graphs: laid out in a worker, drawn as SVG.
const SVG = "http://www.w3.org/2000/svg";
const WIDE = 200, HIGH = 38;  // of a node
const MOST_NODES = [250, 100, 40];  // of a graph, tried in turn until a layout is quick enough
const LAYOUT_TIME = 1000;  // milliseconds
const LAYOUT_WORKER = `onmessage = ({ data: { nodes, edges } }) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ nodesep: 14, ranksep: 30, edgesep: 8, ranker: nodes.length > 100 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach(({ width, height }, n) => graph.setNode(n, { width, height }));
  edges.forEach(({ from, to }) => graph.setEdge(from, to));
  dagre.layout(graph);
  const { width, height } = graph.graph();
  postMessage({ width, height,
    nodes: nodes.map((_, n) => { const { x, y } = graph.node(n); return { x, y }; }),
    edges: edges.map(({ from, to }) => graph.edge(from, to).points) });
};`;

let layoutScript = null, layoutWorker = null;

// Places of nodes { width, height } and edges { from, to }; null where that takes more than a second.
async function layout(nodes, edges) {
  layoutScript ??= URL.createObjectURL(new Blob([await unpack("layoutLibrary"), "\n", LAYOUT_WORKER], { type: "text/javascript" }));
  layoutWorker?.stop();
  return new Promise((resolve, reject) => {
    const worker = new Worker(layoutScript);
    const stop = result => { clearTimeout(timer); worker.terminate(); layoutWorker = null; resolve(result); };
    const timer = setTimeout(() => stop(null), LAYOUT_TIME);
    layoutWorker = { stop: () => stop(undefined) };  // another graph is wanted
    worker.onmessage = ({ data }) => stop(data);
    worker.onerror = event => { stop(null); reject(new Error(event.message)); };
    worker.postMessage({ nodes, edges });
  });
}

function shape(tag, attributes, ...contents) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...contents);
  return element;
}

// Draw nodes { title, words, kind, group, isOutside } at their places; the bounds of the picture.
function drawGraph(svg, nodes, edges, placed, act) {
  const margin = 20;
  const paths = edges.map(({ count: many }, k) => {
    const points = placed.edges[k].map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`);
    return shape("polyline", { points: points.join(" "), class: "edge", "stroke-width": Math.min(1 + Math.log2(many ?? 1) / 2, 4), "marker-end": "url(#arrow)" });
  });
  const boxes = nodes.map((node, n) => {
    const { x, y } = placed.nodes[n], left = x - WIDE / 2, top = y - HIGH / 2;
    const box = shape("g", { class: `node ${fillClass(node.kind)}${node.group ? " group" : ""}${node.isOutside ? " outside" : ""}`, tabindex: 0, role: "button", "data-n": n, "aria-label": `${node.title}, ${node.words}` },
      shape("rect", { x: left, y: top, width: WIDE, height: HIGH, rx: node.group ? 8 : 3 }),
      shape("svg", { x: left + 8, y: top, width: WIDE - 12, height: HIGH, class: "words" },
        shape("text", { y: 16, class: "title" }, middle(node.title, 29)),
        shape("text", { y: 31 }, middle(node.words, 34))));
    return box;
  });
  const arrow = shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
    shape("path", { d: "M0,0L8,4L0,8z", class: "arrow" }));
  svg.replaceChildren(shape("defs", {}, arrow), ...paths, ...boxes);
  svg.onclick = event => {
    const box = event.target.closest?.(".node");
    if (box) act(nodes[box.dataset.n]);
  };
  svg.onkeydown = event => {
    const box = event.target.closest?.(".node");
    if (box && event.key === "Enter") act(nodes[box.dataset.n]);
  };
  return { left: -margin, top: -margin, width: placed.width + 2 * margin, height: placed.height + 2 * margin };
}

// Mark the chosen node, and no other; -1: none is.
function markNode(svg, chosen) {
  for (const box of svg.querySelectorAll(".node")) box.classList.toggle("chosen", +box.dataset.n === chosen);
}

// Let people move and zoom a picture: wheel, drag, keys. `fit(bounds, focus)` shows it as a whole, or as
// far as texts can be read, with a place in the middle.
function movable(svg) {
  const LEAST = .6;
  let at = { x: 0, y: 0, scale: 1 }, drag = null;
  const show = () => {
    const { clientWidth: width, clientHeight: height } = svg;
    svg.setAttribute("viewBox", `${at.x} ${at.y} ${width / at.scale || 1} ${height / at.scale || 1}`);
  };
  const zoom = (factor, x, y) => {
    const scale = Math.min(Math.max(at.scale * factor, .05), 4);
    at = { x: at.x + x / at.scale - x / scale, y: at.y + y / at.scale - y / scale, scale };
    show();
  };
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * .01), event.offsetX, event.offsetY);
    else {
      at.x += (event.shiftKey ? event.deltaY : event.deltaX) / at.scale;
      at.y += (event.shiftKey ? 0 : event.deltaY) / at.scale;
      show();
    }
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { drag = { x: event.clientX, y: event.clientY, from: { ...at } }; });
  svg.addEventListener("pointermove", event => {
    if (!drag || !event.buttons) { drag = null; return; }
    at.x = drag.from.x - (event.clientX - drag.x) / at.scale;
    at.y = drag.from.y - (event.clientY - drag.y) / at.scale;
    show();
  });
  svg.addEventListener("pointerup", () => { drag = null; });
  svg.addEventListener("keydown", event => {
    const move = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[event.key];
    if (move) { at.x += move[0] / at.scale; at.y += move[1] / at.scale; show(); }
    else if (event.key === "+" || event.key === "=") zoom(1.3, svg.clientWidth / 2, svg.clientHeight / 2);
    else if (event.key === "-") zoom(1 / 1.3, svg.clientWidth / 2, svg.clientHeight / 2);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(show).observe(svg);
  return {
    fit(bounds, focus) {
      const { clientWidth: width, clientHeight: height } = svg;
      const scale = Math.min(Math.max(Math.min(width / bounds.width, height / bounds.height), LEAST), 1.2);
      const wide = width / scale, high = height / scale;
      const middleOf = (low, size, room, wanted) => size <= room ? low + (size - room) / 2
        : Math.min(Math.max((wanted ?? low) - room / 2, low), low + size - room);
      at = {
        x: middleOf(bounds.left, bounds.width, wide, focus?.x ?? bounds.left + bounds.width / 2),
        y: middleOf(bounds.top, bounds.height, high, focus?.y), scale,
      };
      show();
    },
  };
}
