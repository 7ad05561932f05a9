// The graph of a part of a computation, and the call graph, as they are shown.
const CANCELLED = "took more than a second and was cancelled";
let path = [];  // the parts of the graph that are open, each inside of the one before
let isDrawn = null;  // the picture that is in the page
let asked = 0;

const graphView = movable($("graphPicture")), callsView = movable($("callsPicture"));

async function showGraph() {
  const { computation, instruction } = state, number = ++asked, isWanted = () => number === asked;
  if (model.home[path[0]?.members[0]] !== computation) path = [wholePart(model, computation)];
  let picture;
  do {  // a layout with fewer boxes may have the instruction in one of them
    if (instruction >= 0) openPathAt(model, path, instruction);
    showPath();
    if (!path.at(-1).picture) say("laying out …");
    picture = await pictureOf(model, path.at(-1), isWanted);
    if (picture === undefined || !isWanted()) return;
  } while (instruction >= 0 && picture.nodes?.some(({ group, members }) => group && members.includes(instruction)));
  keepAddress();
  const part = path.at(-1), { nodes = [], edges, placed, failure } = picture;
  say(failure ? `${failure}: choose a part at the left, or see the text` : graphNote(part, nodes), Boolean(failure));
  if (isDrawn !== picture) kindLegend($("graphLegend"), nodes);
  if (failure) $("graphPicture").replaceChildren();
  else if (isDrawn !== picture)
    picture.bounds = drawGraph($("graphPicture"), nodes, edges, placed, node => {
      if (!node.group) return go({ instruction: node.members[0] });
      go({ path: [...path, partInside(model, part, node.group)] });
    });
  const isNew = isDrawn !== picture;
  isDrawn = picture;
  if (failure) return;
  const chosen = nodes.findIndex(({ group, members }) => !group && members[0] === instruction);
  markNode($("graphPicture"), chosen);
  if (isNew || chosen >= 0 && !graphView.shows(placed.nodes[chosen]))
    graphView.fit(picture.bounds, placed.nodes, placed.nodes[chosen]);
}

function say(words, isFailure = false) {
  $("graphNote").textContent = words;
  $("graphNote").classList.toggle("doubt", isFailure);
}

function graphNote({ members }, nodes) {
  const isConstant = i => i >= 0 && model.text("opcode", i) === "constant";
  const constants = members.filter(isConstant).length;
  return [constants ? `${count(constants, "constant")} not drawn` : "",
    isConstant(state.instruction) ? "one of them is selected" : "",
    nodes.some(({ group }) => group?.kind === "stretch") ? "folded by the order: click a box to open it" : ""]
    .filter(Boolean).join("; ");
}

// The path to the part that is shown, each step a link; a choice between parts that are alike.
function showPath() {
  const repeat = repeatOf(model, path);
  $("path").replaceChildren(...path.flatMap((step, k) => [k ? " › " : "",
    link(middle(step.words, 40), () => go({ path: path.slice(0, k + 1) })),
    ...repeat?.at === k ? chooser(repeat) : []]));
}

function chooser({ scopes, number }) {
  const button = (words, title, step) => {
    const made = make("button", "step", words);
    Object.assign(made, { type: "button", title, disabled: !scopes[number + step], onclick: () => stepRepeat(step) });
    made.setAttribute("aria-label", title);
    return made;
  };
  return [" ", button("‹", "previous (p)", -1), ` ${(number + 1).toLocaleString("en")} of ${scopes.length.toLocaleString("en")} `, button("›", "next (n)", 1)];
}

// Go to the next or previous one of parts that are alike.
function stepRepeat(step) {
  const repeat = repeatOf(model, path);
  if (repeat?.scopes[repeat.number + step]) go({ path: pathThrough(model, path, repeat, repeat.number + step) });
}

// The colours of a graph and their meaning: the kinds that its boxes have, in the order of the styles.
function kindLegend(list, nodes) {
  const present = new Set(nodes.map(({ kind }) => kind));
  list.replaceChildren(...data.kinds.filter(kind => present.has(kind))
    .map(kind => make("li", "", make("i", "swatch " + fillClass(kind)), kind)));
}

// -- call graph --------------------------------------------------------------------------------

const RUN_BY = new Set(["entry", "while", "conditional", "call", "async-start"]);

let callPicture = null;  // made once

async function pictureOfCalls() {
  const own = [];
  for (let c = 0; c < model.places; c++) if (RUN_BY.has(model.role(c)) || !model.callers(c).length) own.push(c);
  const shown = own.slice(0, MOST_NODES[0]), numbers = new Map(shown.map((c, n) => [c, n]));
  const nodes = shown.map(c => ({
    computation: c, kind: model.role(c) === "entry" ? "compute" : "control flow", title: "%" + model.computation(c),
    words: [model.role(c), count(model.first[c + 1] - model.first[c], "instruction"),
      model.runs[c] > 1 ? `${model.runs[c].toLocaleString("en")} runs` : ""].filter(Boolean).join(", "),
  }));
  const pairs = shown.flatMap((c, to) => model.callers(c).map(caller => [numbers.get(model.home[caller]), to]));
  const edges = counted(pairs.filter(([from]) => from !== undefined), nodes.length);
  const placed = await layout(nodes.map(() => ({ width: WIDE, height: HIGH })), edges);
  if (placed === undefined) return null;
  const failure = placed ? placed.failure : `The layout of the call graph ${CANCELLED}`;
  if (failure) return { failure };
  const rest = model.places - own.length;
  const note = [rest ? `${count(rest, "computation")} of fusions, reductions and the like not drawn` : "",
    own.length > shown.length ? `the first ${shown.length} of ${own.length.toLocaleString("en")}` : ""].filter(Boolean).join("; ");
  const bounds = drawGraph($("callsPicture"), nodes, edges, placed, ({ computation }) => go({ computation, tab: "graph" }));
  return { shown, placed, bounds, note };
}

async function showCalls() {
  const number = ++asked, isNew = !callPicture;
  if (isNew) $("callsNote").textContent = "laying out …";
  callPicture ??= await pictureOfCalls();
  if (!callPicture || number !== asked) return;
  const { shown, placed, bounds, note, failure } = callPicture;
  $("callsNote").classList.toggle("doubt", Boolean(failure));
  $("callsNote").textContent = failure ?? note;
  if (failure) return;
  const chosen = shown.indexOf(state.computation);
  markNode($("callsPicture"), chosen);
  if (isNew || chosen >= 0 && !callsView.shows(placed.nodes[chosen])) callsView.fit(bounds, placed.nodes, placed.nodes[chosen]);
}
