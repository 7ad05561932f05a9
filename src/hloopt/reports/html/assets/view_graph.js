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

// Places of nodes { width, height } and edges { from, to }; null where that takes more than so many
// milliseconds, { failure } with words where it fails, undefined where another layout is asked for.
async function layout(nodes, edges, time = LAYOUT_TIME) {
  try {
    layoutScript ??= URL.createObjectURL(new Blob([await unpack("layoutLibrary"), "\n", LAYOUT_WORKER], { type: "text/javascript" }));
    layoutWorker?.stop();
    return await new Promise((resolve, reject) => {
      const worker = new Worker(layoutScript);
      const stop = end => { clearTimeout(timer); worker.terminate(); layoutWorker = null; end(); };
      const timer = setTimeout(() => stop(() => resolve(null)), time);
      layoutWorker = { stop: () => stop(() => resolve(undefined)) };
      worker.onmessage = ({ data }) => stop(() => resolve(data));
      worker.onerror = event => {
        event.preventDefault();
        stop(() => reject(new Error(event.message || "no worker")));
      };
      worker.postMessage({ nodes, edges });
    });
  }
  catch (error) { return { failure: `The layout failed: ${error.message}` }; }
}

function shape(tag, attributes, ...contents) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...contents);
  return element;
}

// Draw nodes { title, words, kind, group, isOutside, change } at their places; the bounds of the picture.
// Where the keyboard was in the picture before, it is at the first box of the new one.
function drawGraph(svg, nodes, edges, placed, act) {
  const margin = 20, hadFocus = svg.contains(document.activeElement);
  const paths = edges.map(({ count: many }, k) => {
    const points = placed.edges[k].map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`);
    return shape("polyline", { points: points.join(" "), class: "edge", "stroke-width": Math.min(1 + Math.log2(many ?? 1) / 2, 4), "marker-end": `url(#${svg.id}Arrow)` });
  });
  const boxes = nodes.map((node, n) => {
    const { x, y } = placed.nodes[n], left = x - WIDE / 2, top = y - HIGH / 2;
    const styles = ["node", fillClass(node.kind), node.group && "group", node.isOutside && "outside", node.change && `marked ${node.change}`];
    return shape("g", { class: styles.filter(Boolean).join(" "), tabindex: 0, role: "button", "data-n": n, "aria-label": `${node.title}, ${node.words}` },
      shape("title", {}, `${middle(node.title, 300)}\n${middle(node.words, 300)}`),
      shape("rect", { x: left, y: top, width: WIDE, height: HIGH, rx: node.group ? 8 : 3 }),
      shape("svg", { x: left + 8, y: top, width: WIDE - 12, height: HIGH, class: "words" },
        shape("text", { y: 16, class: "title" }, middle(node.title, 29)),
        shape("text", { y: 31 }, middle(node.words, 36))));
  });
  const arrow = shape("marker", { id: svg.id + "Arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerUnits: "userSpaceOnUse", markerWidth: 9, markerHeight: 9, orient: "auto-start-reverse" },
    shape("path", { d: "M0,0L8,4L0,8z", class: "arrow" }));
  svg.replaceChildren(shape("defs", {}, arrow), ...paths, ...boxes);
  if (hadFocus) (boxes[0] ?? svg).focus({ preventScroll: true });
  svg.onclick = event => {
    const box = event.target.closest?.(".node");
    if (box) act(nodes[box.dataset.n]);
  };
  svg.onkeydown = event => {
    const box = event.target.closest?.(".node");
    if (!box || event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act(nodes[box.dataset.n]);
  };
  return { left: -margin, top: -margin, width: placed.width + 2 * margin, height: placed.height + 2 * margin };
}

// Mark the chosen node, and no other; -1: none is.
function markNode(svg, chosen) {
  for (const box of svg.querySelectorAll(".node")) box.classList.toggle("chosen", +box.dataset.n === chosen);
}

// Let people move and zoom a picture: wheel, drag, keys. `fit(bounds, places, focus)` shows it as a whole,
// or as far as texts can be read: a place in the middle, or from the top where most boxes are.
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
  // A box that the keyboard comes to is in sight.
  svg.addEventListener("focusin", event => {
    if (event.target === svg || drag) return;
    const box = event.target.getBoundingClientRect(), around = svg.getBoundingClientRect();
    const beyond = (low, high, first, last) => low < first ? low - first - 10 : high > last ? high - last + 10 : 0;
    at.x += beyond(box.left, box.right, around.left, around.right) / at.scale;
    at.y += beyond(box.top, box.bottom, around.top, around.bottom) / at.scale;
    show();
  });
  new ResizeObserver(show).observe(svg);
  return {
    // Whether the box at a place is in sight as a whole.
    shows: ({ x, y }) => Math.abs(x - at.x - svg.clientWidth / at.scale / 2) <= svg.clientWidth / at.scale / 2 - WIDE / 2
      && Math.abs(y - at.y - svg.clientHeight / at.scale / 2) <= svg.clientHeight / at.scale / 2 - HIGH / 2,
    fit(bounds, places, focus) {
      const { clientWidth: width, clientHeight: height } = svg;
      const scale = Math.min(Math.max(Math.min(width / bounds.width, height / bounds.height), LEAST), 1.2);
      const wide = width / scale, high = height / scale;
      const within = (low, size, room, wanted) => size <= room ? low + (size - room) / 2
        : Math.min(Math.max(wanted, low), low + size - room);
      const from = focus ? { x: focus.x - wide / 2, y: focus.y - high / 2 }
        : { x: fullest(places.filter(({ y }) => y < bounds.top + high), wide), y: bounds.top };
      at = { x: within(bounds.left, bounds.width, wide, from.x), y: within(bounds.top, bounds.height, high, from.y), scale };
      show();
    },
  };
}

// Where a window of some width begins that has most of some boxes.
function fullest(places, wide) {
  const lefts = places.map(({ x }) => x - WIDE / 2).sort((a, b) => a - b);
  let best = lefts[0] ?? 0, most = 0;
  for (let from = 0, to = 0; from < lefts.length; from++) {
    while (to < lefts.length && lefts[to] + WIDE <= lefts[from] + wide) to++;
    if (to - from > most) [most, best] = [to - from, (lefts[from] + lefts[to - 1] + WIDE - wide) / 2];
  }
  return best;
}
