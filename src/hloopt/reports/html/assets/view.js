// One state, shown by all views: the tab, the computation, the part of its graph, the instruction.
const VIEWS = { g: "graph", t: "text", l: "schedule", m: "memory", c: "cost", a: "calls", d: "changes" };
const state = { tab: data.tab, computation: 0, instruction: -1 };
let model = null, tree = null, lines = null;
const opened = new Set(["c0"]);
let treeRows = null, treeBy = "computation", foundRows = null;  // null: to be made anew

// -- the list at the left ----------------------------------------------------------------------

const treeList = rowList($("tree"), {
  height: TREE_ROW,
  rowAt: n => treeRow(model, tree, treeRows[n], opened.has(keyOf(treeRows[n]))),
  choose(n, event) {
    const row = treeRows[n];
    if (row.instruction !== undefined) return go({ instruction: row.instruction });
    const key = keyOf(row), isOpen = opened.has(key);
    if (event.key === "ArrowLeft" ? !isOpen : event.key === "ArrowRight" && isOpen) return;
    if (isOpen) opened.delete(key); else opened.add(key);
    treeRows = null;
    if (row.scope !== undefined) showScope(row.scope);
    else if (!isOpen) go({ computation: row.computation });
    showTree();
  },
});

const keyOf = row => row.scope === undefined ? "c" + row.computation : "s" + row.scope;

function showTree(isSeen = false) {
  treeRows ??= foundRows ?? tree.rows(treeBy);
  const current = treeRows.findIndex(row => row.instruction === state.instruction);
  $("treeHead").textContent = foundRows ? count(foundRows.length, "instruction") + " found" : "";
  treeList.show(treeRows.length, current, isSeen);
}

// Open what a row is in, so that it is in sight.
function openAround(i) {
  const before = opened.size;
  if (treeBy === "computation") opened.add("c" + model.home[i]);
  else for (let s = model.scope(i); ; s = model.scopeParent[s]) { opened.add("s" + s); if (!s) break; }
  if (opened.size > before) treeRows = null;
}

// The graph of the computation that has most of a scope, opened there.
function showScope(scope) {
  const computation = mainComputation(model, scope);
  path = pathToScope(model, computation, scope);
  Object.assign(state, { computation, tab: "graph", instruction: -1 });
  show();
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
  choose(n, event) {
    if (event.target.closest?.("button")) return;
    go({ instruction: model.first[state.computation] + n });
  },
});

// What a name in the text of an instruction leads to.
function targetOf(name, i) {
  const operand = [...model.operands(i)].find(o => model.name(o) === name);
  if (operand !== undefined) return () => go({ instruction: operand });
  const called = model.computationNames.get(name);
  return called === undefined ? null : () => go({ computation: called });
}

function showText() {
  const c = state.computation, [from, to] = [model.first[c], model.first[c + 1]];
  const { instruction: i } = state;
  $("textHead").textContent = `${cutName(model.computation(c))}: ${count(to - from, "instruction")}`;
  textList.show(to - from, i >= from && i < to ? i - from : -1);
}

// -- changes -----------------------------------------------------------------------------------

let changes = [];
const changeList = $("changeLines") && rowList($("changeLines"), {
  height: TEXT_ROW,
  rowAt(n) {
    const { mark, name, text } = changes[n];
    return make("div", `line mark-${{ "+": "added", "-": "removed", "~": "changed" }[mark] ?? "head"}`, `${mark} `, middle(text || name, LONGEST));
  },
  choose(n) {
    const i = changes[n].mark === "-" ? undefined : model.byName.get(changes[n].name);
    if (i !== undefined) go({ instruction: i });
  },
});

async function showChanges() {
  if (!changes.length) changes = JSON.parse(await unpack("changesData")).map(([mark, name, text]) => ({ mark, name, text }));
  $("changesNote").textContent = changes.length ? "" : "the modules do not differ";
  changeList.show(changes.length, changes.findIndex(({ name }) => state.instruction >= 0 && name === model.name(state.instruction)));
}

// -- parts: pages of their own -----------------------------------------------------------------

const frames = new Map();

async function showPart(name) {
  const note = data.missing[name];
  if (note) return;
  let frame = frames.get(name);
  if (!frame) {
    frame = document.createElement("iframe");
    frame.title = name;
    frames.set(name, frame);
    frame.srcdoc = await unpack(name + "Page");
    await new Promise(resolve => { frame.onload = resolve; $(name).replaceChildren(frame); });
  }
  tellPart(frame);
}

function tellPart(frame) {
  const i = state.instruction;
  frame.contentWindow?.postMessage({ select: i < 0 ? null : { name: model.name(i), computation: model.computation(model.home[i]) } }, "*");
}

addEventListener("message", event => {
  const chosen = event.data?.selected;
  if (!chosen || ![...frames.values()].some(frame => frame.contentWindow === event.source)) return;
  const c = model.computationNames.get(chosen.computation);
  const i = c === undefined ? model.byName.get(chosen.name) : instructionOf(c, chosen.name);
  if (i !== undefined && i !== state.instruction) go({ instruction: i });
});

function instructionOf(c, name) {
  for (let i = model.first[c]; i < model.first[c + 1]; i++) if (model.name(i) === name) return i;
}

// -- all views ---------------------------------------------------------------------------------

const SHOW = { graph: showGraph, text: showText, calls: showCalls, changes: showChanges };

function go(change) {
  if (change.instruction >= 0) {
    change.computation = model.home[change.instruction];
    openAround(change.instruction);
  }
  else if (change.computation !== undefined && change.computation !== state.computation) change.instruction = -1;
  Object.assign(state, change);
  show();
}

function show() {
  for (const button of document.querySelectorAll("#tabs button")) {
    const isChosen = button.dataset.tab === state.tab;
    button.setAttribute("aria-selected", isChosen);
    $(button.dataset.tab).hidden = !isChosen;
  }
  showTree(true);
  const { instruction: i } = state;
  $("details").replaceChildren(...i < 0 ? overview(data.facts) : detailsOf(model, lines, i, go));
  (SHOW[state.tab] ?? showPart)(state.tab);
  const words = new URLSearchParams({ tab: state.tab, computation: model.computation(state.computation) });
  if (i >= 0) words.set("instruction", model.name(i));
  history.replaceState(null, "", "#" + words);
}

function readFragment() {
  const words = new URLSearchParams(location.hash.slice(1));
  const tab = words.get("tab"), c = model.computationNames.get(words.get("computation"));
  if (document.querySelector(`#tabs button[data-tab="${CSS.escape(tab ?? "")}"]`)) state.tab = tab;
  if (c !== undefined) state.computation = c;
  const i = words.has("instruction") ? instructionOf(state.computation, words.get("instruction")) : undefined;
  state.instruction = i ?? -1;
  if (i !== undefined) openAround(i);
}

for (const button of document.querySelectorAll("#tabs button"))
  button.onclick = () => go({ tab: button.dataset.tab });
$("treeBy").onchange = () => {
  treeBy = $("treeBy").value;
  treeRows = null;
  if (state.instruction >= 0) openAround(state.instruction);
  showTree(true);
};
let typing = 0;
$("find").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const wanted = $("find").value.trim().toLowerCase();
    foundRows = wanted ? found(model, wanted) : null;
    treeRows = null;
    showTree();
  }, 80);
});
$("find").addEventListener("keydown", event => {
  if (event.key === "Enter" && foundRows?.length) { go({ instruction: foundRows[0].instruction }); $("tree").focus(); }
  if (event.key === "Escape") { $("find").value = ""; foundRows = treeRows = null; showTree(true); $("tree").focus(); }
});
addEventListener("keydown", event => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey || !model) return;
  const tab = VIEWS[event.key];
  if (event.key === "/") { $("find").focus(); event.preventDefault(); }
  else if (tab && document.querySelector(`#tabs button[data-tab="${tab}"]`)) go({ tab });
});
addEventListener("hashchange", () => { readFragment(); show(); });

(async () => {
  model = readModel(JSON.parse(await unpack("columnsData")));
  tree = treeOf(model, opened);
  if (!model.scopeCount || model.scopeCount < 2) $("treeBy").parentElement.hidden = true;
  readFragment();
  show();
  document.documentElement.dataset.ready = "true";
  lines = (await unpack("linesData")).split("\n");
  if (state.tab === "text") textList.refresh();
  if (state.instruction >= 0) $("details").replaceChildren(...detailsOf(model, lines, state.instruction, go));
})();
