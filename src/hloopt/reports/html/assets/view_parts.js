// Parts of a computation's graph, each inside of the one before: { words, key, members, scope }. `key`
// finds a part again in another session; parts are made once, and keep their nodes and pictures.
const MOST_OUTSIDE = 12;  // instructions around a part that are drawn, on either side

const wholeParts = new Map();  // by computation

function wholePart(model, c) {
  if (!wholeParts.has(c)) {
    const from = model.first[c], members = Array.from({ length: model.first[c + 1] - from }, (_, k) => from + k);
    wholeParts.set(c, { words: "%" + model.computation(c), key: "", scope: 0, members });
  }
  return wholeParts.get(c);
}

// By scope whether it is `outer` or inside of it.
function scopesWithin(model, outer) {
  const within = new Uint8Array(model.scopeCount);
  for (let s = 0; s < within.length; s++) within[s] = s === outer || s && within[model.scopeParent[s]];
  return within;
}

// The computation that has most instructions of a scope.
function mainComputation(model, scope) {
  const counts = new Int32Array(model.places), within = scopesWithin(model, scope);
  for (let i = 0; i < model.count; i++) if (within[model.scope(i)]) counts[model.home[i]]++;
  return counts.reduce((best, many, c) => many > counts[best] ? c : best, 0);
}

// What a part has of a scope below its own, as a part.
function scopePart(model, part, scope) {
  part.inside ??= new Map();
  if (!part.inside.has(scope)) {
    const within = scopesWithin(model, scope), words = model.scopeName(scope);
    const members = part.members.filter(i => within[model.scope(i)]);
    part.inside.set(scope, { words, key: "s:" + words, members, scope });
  }
  return part.inside.get(scope);
}

function pathToScope(model, computation, scope) {
  const path = [wholePart(model, computation)], scopes = [];
  for (let s = scope; s; s = model.scopeParent[s]) scopes.unshift(s);
  for (const s of scopes) {
    const part = scopePart(model, path.at(-1), s);
    if (part.members.length) path.push(part);
  }
  return path;
}

// The nodes of a part, made once: at most as many as its layout was quick enough for.
function nodesOf(model, part, most = part.most ?? MOST_NODES[0]) {
  part.nodes ??= new Map();
  if (!part.nodes.has(most)) part.nodes.set(most, graphNodes(model, part.members, part.scope, most));
  return part.nodes.get(most);
}

// The part that a group stands for; of a repeat that of the scope which has an instruction.
function partInside(model, part, node, i = node.members[0]) {
  if (node.kind === "repeat") return scopePart(model, part, childScope(model, model.scope(i), part.scope));
  if (node.kind === "scope") return scopePart(model, part, node.scope);
  const first = model.name(node.members[0]);
  return node.part ??= {
    words: node.kind === "alike" ? node.name : `%${first} …`,
    key: node.kind === "alike" ? "a:" + node.name : "o:" + first, members: node.members, scope: part.scope,
  };
}

// Go up and down a path until an instruction is a node of its own.
function openPathAt(model, path, i) {
  while (path.length > 1 && !path.at(-1).members.includes(i)) path.pop();
  for (;;) {
    const part = path.at(-1);
    const node = nodesOf(model, part).find(({ members }) => members.includes(i));
    if (!node || node.kind === "instruction") return;
    path.push(partInside(model, part, node, i));
  }
}

// The path of a computation's graph by the keys of its parts, as far as there are any.
function pathByKeys(model, computation, keys) {
  const path = [wholePart(model, computation)];
  for (const key of keys) {
    const part = path.at(-1), inside = key.startsWith("s:") ? scopeByKey(model, part, key) : groupByKey(model, part, key);
    if (!inside) break;
    path.push(inside);
  }
  return path;
}

function scopeByKey(model, part, key) {
  for (let s = 1; s < model.scopeCount; s++) {
    if (model.scopeParent[s] !== part.scope || model.scopeName(s) !== key.slice(2)) continue;
    const inside = scopePart(model, part, s);
    return inside.members.length ? inside : null;
  }
  return null;
}

function groupByKey(model, part, key) {
  for (const most of part.most ? [part.most] : MOST_NODES)
    for (const node of nodesOf(model, part, most)) {
      if (node.kind !== "alike" && node.kind !== "stretch") continue;
      const inside = partInside(model, part, node);
      if (inside.key === key) return inside;
    }
  return null;
}

// The innermost part of a path that is one of several alike: its place in the path, the scopes of all
// and its number among them; null: there is none.
function repeatOf(model, path) {
  for (let k = path.length - 1; k > 0; k--) {
    const { scope } = path[k];
    if (!path[k].key.startsWith("s:")) continue;
    const node = nodesOf(model, path[k - 1]).find(({ kind, scopes }) => kind === "repeat" && scopes.includes(scope));
    if (node) return { at: k, scopes: node.scopes, number: node.scopes.indexOf(scope) };
  }
  return null;
}

// The path through another of the parts that are alike.
function pathThrough(model, path, { at, scopes }, number) {
  const keys = path.slice(1).map(({ key }) => key);
  keys[at - 1] = "s:" + model.scopeName(scopes[number]);
  return pathByKeys(model, model.home[path[0].members[0]], keys);
}

// What a node shows of itself.
function described(model, node, isOutside = false) {
  const [i] = node.members;
  if (node.kind === "instruction") {
    const change = model.changeOf.get(i), shape = model.text("shape", i).replace(/\{[^}]*\}/g, "");
    return { ...node, kind: model.kind(i), title: `${change ? change + " " : ""}%${model.name(i)}`, isOutside,
      words: `${model.text("opcode", i)} ${shape}`, change };
  }
  const title = node.kind === "scope" ? model.scopeName(node.scope)
    : node.kind === "repeat" ? `${node.scopes.length} × ${node.name}`
    : node.kind === "alike" ? (node.name === "parameter" ? "parameters" : node.name)
    : `%${model.name(i)} … %${model.name(node.members.at(-1))}`;
  const changed = model.changeOf.size ? node.members.filter(i => model.changeOf.has(i)).length : 0;
  const { kind, collectives } = kindsOf(model, node.members);
  const words = [count(node.members.length, "instruction"), changed && `${changed.toLocaleString("en")} changed`,
    collectives && collectives < node.members.length && count(collectives, "collective")].filter(Boolean).join(", ");
  return { ...node, group: node, kind, title, words, change: changed ? "inside" : undefined };
}

// The kind that takes most of the time of some instructions, where there are times, else the one that
// most of them have; and how many are collectives.
function kindsOf(model, members) {
  const counts = new Map(), times = new Map();
  let time = 0;
  for (const i of members) {
    const kind = model.kind(i), own = model.times?.cycles[i] ?? 0;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    times.set(kind, (times.get(kind) ?? 0) + own);
    time += own;
  }
  const [kind] = [...time ? times : counts].reduce((best, each) => each[1] > best[1] ? each : best);
  return { kind, collectives: counts.get("collective") ?? 0 };
}

// What stands around a part: what it reads and what reads it.
function boundary(model, part) {
  const found = new Set();
  for (const around of [model.operands, model.users])
    for (const i of outside(model, part.members, around).slice(0, MOST_OUTSIDE)) found.add(i);
  return [...found].map(i => described(model, { kind: "instruction", members: [i] }, true));
}

// The picture of a part, made once: its nodes, edges and their places, or `failure`: why there is none.
// All layouts that are tried have one second together. Undefined: another picture is wanted meanwhile.
async function pictureOf(model, part, isWanted) {
  if (part.picture) return part.picture;
  const around = boundary(model, part);
  let rest = LAYOUT_TIME;
  for (const most of MOST_NODES) {
    await pause();
    if (!isWanted()) return undefined;
    const nodes = [...nodesOf(model, part, most).map(node => described(model, node)), ...around];
    await pause();
    if (!isWanted()) return undefined;
    const edges = graphEdges(model, nodes), time = most === MOST_NODES.at(-1) ? rest : rest / 2;
    rest -= time;
    const placed = await layout(nodes.map(() => ({ width: WIDE, height: HIGH })), edges, time);
    if (placed === undefined) return undefined;
    if (placed?.failure) return part.picture = placed;
    if (placed) {
      part.most = most;
      return part.picture = { nodes, edges, placed };
    }
  }
  return part.picture = { failure: `The layout of this graph ${CANCELLED}` };
}

// Let the browser draw and answer keys before what comes next.
const pause = () => new Promise(resolve => setTimeout(resolve));
