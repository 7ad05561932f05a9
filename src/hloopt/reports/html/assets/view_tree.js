// The list at the left: computations or scopes with what they have inside, or what a search finds.
const TREE_ROW = 22;

function treeOf(model, opened) {
  const inside = Array.from({ length: model.scopeCount }, () => []);  // scopes below each scope
  for (let s = 1; s < model.scopeCount; s++) inside[model.scopeParent[s]].push(s);
  let members = null;  // instructions of each scope, and how many are in or below it

  function scopeMembers() {
    if (members) return members;
    const own = Array.from({ length: model.scopeCount }, () => []), all = new Int32Array(model.scopeCount);
    for (let i = 0; i < model.count; i++) own[model.scope(i)].push(i);
    for (let s = model.scopeCount - 1; s >= 0; s--) {
      all[s] += own[s].length;
      if (s) all[model.scopeParent[s]] += all[s];
    }
    return members = { own, all };
  }

  function byComputation(rows) {
    for (let c = 0; c < model.places; c++) {
      rows.push({ level: 0, computation: c });
      if (opened.has("c" + c))
        for (let i = model.first[c]; i < model.first[c + 1]; i++) rows.push({ level: 1, instruction: i });
    }
  }

  function byScope(rows) {
    const { own } = scopeMembers();
    const waiting = inside[0].map(s => [s, 0]).reverse();
    while (waiting.length) {
      const [s, level] = waiting.pop();
      rows.push({ level, scope: s });
      if (!opened.has("s" + s)) continue;
      for (const i of own[s]) rows.push({ level: level + 1, instruction: i });
      for (let k = inside[s].length - 1; k >= 0; k--) waiting.push([inside[s][k], level + 1]);
    }
    rows.push({ level: 0, scope: 0 });
    if (opened.has("s0")) for (const i of own[0]) rows.push({ level: 1, instruction: i });
  }

  return {
    scopeMembers,
    rows(by) {
      const rows = [];
      if (by === "scope") byScope(rows); else byComputation(rows);
      return rows;
    },
  };
}

// Rows of the computations and instructions that a text is in; `%` in front of a name is no part of it.
function found(model, words) {
  const wanted = words.replace(/^%/, ""), rows = [];
  for (let c = 0; c < model.places; c++)
    if (model.computation(c).toLowerCase().includes(wanted)) rows.push({ level: 0, computation: c });
  const hits = search(model.columns, ["name", "op_name", "opcode", "shape", "source"], wanted, model.count);
  hits.forEach((isHit, i) => { if (isHit) rows.push({ level: 0, instruction: i }); });
  return rows;
}

// How many there are of each in rows that were found.
function foundWords(rows) {
  const instructions = rows.filter(({ instruction }) => instruction !== undefined).length;
  const computations = rows.length - instructions;
  return [computations && count(computations, "computation"), (instructions || !computations) && count(instructions, "instruction")]
    .filter(Boolean).join(", ") + " found";
}

// What tells a row of the list from all others, however the list changes.
const keyOf = ({ instruction, scope, computation }) =>
  instruction ?? (scope === undefined ? "c" + computation : "s" + scope);

function treeRow(model, tree, row, isOpen) {
  const key = row.scope === undefined ? row.computation : row.scope;
  if (row.instruction !== undefined) {
    const i = row.instruction, element = make("div", "leaf " + fillClass(model.text("kind", i)));
    element.append(make("i", "swatch"), make("span", "name", cutName(model.name(i))),
      make("span", "dim", model.text("opcode", i)));
    element.style.paddingLeft = 8 + 14 * row.level + "px";
    markChange(model, i, element);
    return element;
  }
  const [words, number] = row.scope === undefined
    ? [cutName(model.computation(key)), model.first[key + 1] - model.first[key]]
    : [row.scope ? middle(model.scopeName(key), 120) : "(no scope)", row.scope ? tree.scopeMembers().all[key] : tree.scopeMembers().own[0].length];
  const role = row.scope === undefined ? model.role(key) : "";
  const element = make("div", "branch", make("span", "mark", isOpen ? "▾" : "▸"),
    make("span", "name", words), make("span", "dim", `${role} ${number.toLocaleString("en")}`));
  element.style.paddingLeft = 8 + 14 * row.level + "px";
  return element;
}

function markChange(model, i, element) {
  const change = model.changeOf.get(i);
  if (change) element.append(make("span", "change " + change, change));
}

const fillClass = kind => "kind-" + kind.replaceAll(" ", "-");
