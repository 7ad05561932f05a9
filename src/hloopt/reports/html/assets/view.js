// One state, shown by all views: the tab, the computation, the instruction, or a removed one's line.
const VIEWS = { g: "graph", t: "text", l: "schedule", m: "memory", c: "cost", a: "calls", d: "changes" };
const state = { tab: data.tab, computation: 0, instruction: -1, removed: -1 };
let model = null, tree = null, lines = null;
const opened = new Set(["c0"]);
let treeRows = null, treeBy = "computation", foundRows = null;  // null: to be made anew

// -- the list at the left ----------------------------------------------------------------------

const treeList = rowList($("tree"), {
  height: TREE_ROW,
  rowAt: n => treeRow(model, tree, treeRows[n], opened.has(keyOf(treeRows[n]))),
  keyAt: n => keyOf(treeRows[n]),
  choose(n, event) {
    const row = treeRows[n];
    if (row.instruction !== undefined) return go({ instruction: row.instruction });
    if (foundRows) return go({ computation: row.computation });
    const key = keyOf(row), isOpen = opened.has(key);
    if (event.key === "ArrowLeft" ? !isOpen : event.key === "ArrowRight" && isOpen) return;
    if (isOpen) opened.delete(key); else opened.add(key);
    treeRows = null;
    if (row.scope !== undefined) goToScope(row.scope);
    else if (!isOpen) go({ computation: row.computation });
    showTree();
  },
});

function showTree() {
  treeRows ??= foundRows ?? tree.rows(treeBy);
  $("treeHead").textContent = foundRows ? foundWords(foundRows) : "";
  treeList.show(treeRows.length, treeRows.findIndex(({ instruction }) => instruction === state.instruction));
}

function listBy(what) {
  treeBy = $("treeBy").value = what;
  treeRows = null;
}

// Open what a row is in, so that it is in sight.
function openAround(i) {
  const before = opened.size;
  if (treeBy === "computation") opened.add("c" + model.home[i]);
  else for (let s = model.scope(i); ; s = model.scopeParent[s]) { opened.add("s" + s); if (!s) break; }
  if (opened.size > before) treeRows = null;
}

// The graph of the computation that has most of a scope, opened there.
function goToScope(scope) {
  const computation = mainComputation(model, scope);
  go({ computation, tab: "graph", path: pathToScope(model, computation, scope) });
}

// -- text --------------------------------------------------------------------------------------

const textList = rowList($("textLines"), {
  height: TEXT_ROW,
  rowAt(n) {
    const i = model.first[state.computation] + n;
    const row = make("div", "line", ...lines ? highlighted(lines[i], name => targetOf(name, i)) : ["…"]);
    markChange(model, i, row);
    return row;
  },
  keyAt: n => model.first[state.computation] + n,
  choose: n => go({ instruction: model.first[state.computation] + n }),
});

// What a name in the text of an instruction leads to.
function targetOf(name, i) {
  const operand = [...model.operands(i)].find(o => model.name(o) === name);
  if (operand !== undefined) return () => go({ instruction: operand });
  const called = model.called(i).find(c => model.computation(c) === name);
  return called === undefined ? null : () => go({ computation: called });
}

async function showText() {
  const c = state.computation, [from, to] = [model.first[c], model.first[c + 1]];
  const { instruction: i } = state;
  $("textHead").textContent = `${cutName(model.computation(c))}: ${count(to - from, "instruction")}`;
  textList.show(to - from, i >= from && i < to ? i - from : -1);
}

// -- all views ---------------------------------------------------------------------------------

const SHOW = { graph: showGraph, text: showText, calls: showCalls, changes: showChanges };

// Select what the user chose: a tab, a computation, an instruction, a removed one, a path of the graph.
function go({ path: opens, ...change }) {
  if (change.instruction >= 0) {
    change.computation = model.home[change.instruction];
    openAround(change.instruction);
  }
  else if (opens || change.removed >= 0 || (change.computation ?? state.computation) !== state.computation)
    change.instruction = -1;
  if (change.instruction !== undefined) change.removed ??= -1;
  Object.assign(state, change);
  if (opens) path = opens;
  show(true);
}

function show(isStep = false) {
  for (const button of document.querySelectorAll("#tabs button")) {
    const isChosen = button.dataset.tab === state.tab;
    button.setAttribute("aria-selected", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
    $(button.dataset.tab).hidden = !isChosen;
  }
  showTree();
  showDetails();
  keepAddress(isStep);
  (SHOW[state.tab] ?? showReport)(state.tab).catch(fail);
}

function showDetails() {
  const { instruction: i, removed } = state;
  $("details").replaceChildren(...i >= 0 ? detailsOf(model, lines, i, go)
    : removed >= 0 ? detailsOfRemoved(removed) : overview(data.facts));
}

// Say what to do where the page does not work.
function fail(error) {
  $("details").replaceChildren(make("h2", "", "This page failed"), make("p", "doubt", String(error)),
    make("p", "", "It needs Chromium 92, Firefox 113, Safari 16.4 or a newer one. hloopt skeleton and hloopt show print the module in a terminal."));
}

// -- mouse and keys ----------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("#tabs button")];
for (const button of tabs) button.onclick = () => go({ tab: button.dataset.tab });
$("tabs").addEventListener("keydown", event => {
  const at = tabs.indexOf(event.target), last = tabs.length - 1;
  const to = { ArrowLeft: at ? at - 1 : last, ArrowRight: at < last ? at + 1 : 0, Home: 0, End: last }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  tabs[to].focus();
  go({ tab: tabs[to].dataset.tab });
});
$("treeBy").onchange = () => {
  listBy($("treeBy").value);
  if (state.instruction >= 0) openAround(state.instruction);
  showTree();
  keepAddress();
};

let typing = 0;
function find() {
  clearTimeout(typing);
  typing = 0;
  const wanted = $("find").value.trim().toLowerCase();
  foundRows = wanted ? found(model, wanted) : null;
  treeRows = null;
  showTree();
}
$("find").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(find, 80);
});
$("find").addEventListener("keydown", event => {
  if (!["Enter", "Escape", "ArrowDown"].includes(event.key) || !model) return;
  if (event.key === "Escape") $("find").value = "";
  if (typing || event.key === "Escape") find();
  if (event.key === "Enter" && foundRows?.length)
    go(foundRows[0].instruction === undefined ? { computation: foundRows[0].computation } : { instruction: foundRows[0].instruction });
  treeList.enter();
  event.preventDefault();
});

// What a key does wherever it is pressed, in reports as well; whether it does anything.
function shortcut(key) {
  const tab = VIEWS[key], isInReport = document.activeElement.matches("iframe");
  if (key === "/") $("find").focus();
  else if (key === "p" || key === "n") stepRepeat(key === "n" ? 1 : -1);
  else if (tabs.some(button => button.dataset.tab === tab)) {
    go({ tab });
    if (isInReport) tabs.find(button => button.dataset.tab === tab).focus();
  }
  else return false;
  return true;
}
addEventListener("keydown", event => {
  if (event.target.closest?.("input, select") || event.ctrlKey || event.metaKey || event.altKey || !model) return;
  if (shortcut(event.key)) event.preventDefault();
});
addEventListener("popstate", () => {
  if (!model || location.hash === address()) return;
  readAddress();
  show();
});

(async () => {
  model = readModel(JSON.parse(await unpack("columnsData")));
  tree = treeOf(model, opened);
  if (!model.scopeCount || model.scopeCount < 2) $("treeBy").parentElement.hidden = true;
  readAddress();
  show();
  document.documentElement.dataset.ready = "true";
  lines = (await unpack("linesData")).split("\n");
  if (state.tab === "text") textList.refresh();
  if (state.instruction >= 0) showDetails();
})().catch(fail);
