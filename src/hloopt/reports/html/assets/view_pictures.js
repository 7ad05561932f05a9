// The graph of a part of a computation, and the call graph, as they are shown.
const CANCELLED = "took more than a second and was cancelled";
let path = [];  // the parts of the graph that are open, each inside of the one before
let isDrawn = null;  // the picture that is in the page
let asked = 0;

const graphView = movable($("graphPicture")), callsView = movable($("callsPicture"));

async function showGraph() {
  const { computation, instruction } = state, number = ++asked;
  if (model.home[path[0]?.members[0]] !== computation) path = [wholePart(model, computation)];
  if (instruction >= 0) openPathAt(model, path, instruction);
  const part = path.at(-1);
  $("path").replaceChildren(...path.flatMap((step, k) => [k ? " › " : "",
    link(middle(step.words, 40), () => { path.length = k + 1; go({ instruction: -1 }); })]));
  const picture = await pictureOf(model, part);
  if (picture === undefined || number !== asked) return;
  if (!picture) {
    $("graphPicture").replaceChildren();
    $("graphNote").textContent = `The layout of this graph ${CANCELLED}: choose a part at the left, or see the text`;
    isDrawn = null;
    return;
  }
  const { nodes, edges, placed } = picture;
  if (isDrawn !== picture) {
    const constants = part.members.filter(i => model.text("opcode", i) === "constant").length;
    $("graphNote").textContent = [constants ? `${count(constants, "constant")} not drawn` : "",
      nodes.some(({ group }) => group?.kind === "stretch") ? "folded by the order: click a box to open it" : ""]
      .filter(Boolean).join("; ");
    picture.bounds = drawGraph($("graphPicture"), nodes, edges, placed, node => {
      if (!node.group) return go({ instruction: node.members[0] });
      path.push(partInside(model, part, node.group));
      go({ instruction: -1 });
    });
    isDrawn = picture;
  }
  const chosen = nodes.findIndex(({ members }) => members.length === 1 && members[0] === instruction);
  markNode($("graphPicture"), chosen);
  const largest = nodes.reduce((best, { members }, n) => members.length > nodes[best].members.length ? n : best, 0);
  graphView.fit(picture.bounds, placed.nodes[chosen < 0 ? largest : chosen]);
}

// -- call graph --------------------------------------------------------------------------------

const RUN_BY = new Set(["entry", "while", "conditional", "call", "async-start"]);

async function showCalls() {
  const own = [];
  for (let c = 0; c < model.places; c++) if (RUN_BY.has(model.role(c)) || !model.callers(c).length) own.push(c);
  const shown = own.slice(0, MOST_NODES[0]), numbers = new Map(shown.map((c, n) => [c, n]));
  const nodes = shown.map(c => ({
    computation: c, kind: model.role(c) === "entry" ? "compute" : "control flow", title: "%" + model.computation(c),
    words: [model.role(c), count(model.first[c + 1] - model.first[c], "instruction"),
      model.runs[c] > 1 ? `${model.runs[c].toLocaleString("en")} runs` : ""].filter(Boolean).join(", "),
  }));
  const pairs = shown.flatMap((c, to) => model.callers(c).map(caller => [numbers.get(model.home[caller]), to]));
  const edges = counted(pairs.filter(([from]) => from !== undefined), nodes.length), number = ++asked;
  const placed = await layout(nodes.map(() => ({ width: WIDE, height: HIGH })), edges);
  if (placed === undefined || number !== asked) return;
  const rest = model.places - own.length;
  $("callsNote").textContent = !placed ? `The layout of the call graph ${CANCELLED}`
    : [rest ? `${count(rest, "computation")} of fusions, reductions and the like not drawn` : "",
      own.length > shown.length ? `the first ${shown.length} of ${own.length.toLocaleString("en")}` : ""].filter(Boolean).join("; ");
  if (!placed) return $("callsPicture").replaceChildren();
  const bounds = drawGraph($("callsPicture"), nodes, edges, placed, ({ computation }) => go({ computation, tab: "graph" }));
  const chosen = shown.indexOf(state.computation);
  markNode($("callsPicture"), chosen);
  callsView.fit(bounds, placed.nodes[chosen]);
}
