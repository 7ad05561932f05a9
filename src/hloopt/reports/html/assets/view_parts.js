// Parts of a computation's graph, each inside of the one before: { words, members, scope }.
const MOST_OUTSIDE = 12;  // instructions around a part that are drawn, on either side

function wholePart(model, c) {
  const [from, to] = [model.first[c], model.first[c + 1]];
  return { words: "%" + model.computation(c), scope: 0, members: Array.from({ length: to - from }, (_, k) => from + k) };
}

// Whether a scope is another one or inside of it.
function isWithin(model, scope, outer) {
  while (scope && scope !== outer) scope = model.scopeParent[scope];
  return scope === outer;
}

// The computation that has most instructions of a scope.
function mainComputation(model, scope) {
  const counts = new Int32Array(model.places);
  for (let i = 0; i < model.count; i++) if (isWithin(model, model.scope(i), scope)) counts[model.home[i]]++;
  return counts.reduce((best, many, c) => many > counts[best] ? c : best, 0);
}

function pathToScope(model, computation, scope) {
  const path = [wholePart(model, computation)], scopes = [];
  for (let s = scope; s; s = model.scopeParent[s]) scopes.unshift(s);
  for (const s of scopes) {
    const members = path.at(-1).members.filter(i => isWithin(model, model.scope(i), s));
    if (members.length) path.push({ words: model.scopeName(s), members, scope: s });
  }
  return path;
}

// The nodes of a part, made once.
function nodesOf(model, part, most) {
  part.nodes ??= new Map();
  if (!part.nodes.has(most)) part.nodes.set(most, graphNodes(model, part.members, part.scope, most));
  return part.nodes.get(most);
}

// The part that a group stands for, made once; of a repeat that of the scope which has an instruction.
function partInside(model, part, node, i = node.members[0]) {
  const scope = node.kind === "repeat" ? childScope(model, model.scope(i), part.scope) : node.scope ?? part.scope;
  node.parts ??= new Map();
  if (!node.parts.has(scope)) {
    const members = node.kind === "repeat" ? node.members.filter(m => isWithin(model, model.scope(m), scope)) : node.members;
    const words = node.kind === "alike" ? node.name
      : node.kind === "stretch" ? `%${model.name(members[0])} …` : model.scopeName(scope);
    node.parts.set(scope, { words, members, scope });
  }
  return node.parts.get(scope);
}

// Go up and down a path until an instruction is a node of its own.
function openPathAt(model, path, i) {
  while (path.length > 1 && !path.at(-1).members.includes(i)) path.pop();
  for (;;) {
    const part = path.at(-1);
    const node = nodesOf(model, part, MOST_NODES[0]).find(node => node.members.includes(i));
    if (!node || node.kind === "instruction") return;
    path.push(partInside(model, part, node, i));
  }
}

// What a node shows of itself.
function described(model, node, isOutside = false) {
  const [i] = node.members;
  if (node.kind === "instruction")
    return { ...node, kind: model.text("kind", i), title: "%" + model.name(i), isOutside,
      words: `${model.text("opcode", i)} ${model.text("shape", i).replace(/\{[^}]*\}/g, "")}` };
  const title = node.kind === "scope" ? model.scopeName(node.scope)
    : node.kind === "repeat" ? `${node.count} × ${node.name}`
    : node.kind === "alike" ? (node.name === "parameter" ? "parameters" : node.name)
    : `%${model.name(i)} … %${model.name(node.members.at(-1))}`;
  return { ...node, group: node, kind: mainKind(model, node.members), title, words: count(node.members.length, "instruction") };
}

// The most telling kind of some instructions.
function mainKind(model, members) {
  const kinds = new Set(members.map(i => model.text("kind", i)));
  return ["collective", "product", "custom call", "control flow", "compute", "copy"].find(kind => kinds.has(kind)) ?? "value";
}

// What stands around a part: what it reads and what reads it.
function boundary(model, part) {
  const found = new Set();
  for (const around of [model.operands, model.users])
    for (const i of outside(model, part.members, around).slice(0, MOST_OUTSIDE)) found.add(i);
  return [...found].map(i => described(model, { kind: "instruction", members: [i] }, true));
}

// The picture of a part, made once: its nodes, edges and their places; null where no layout was quick
// enough, undefined where another one is wanted meanwhile.
async function pictureOf(model, part) {
  if (part.picture) return part.picture;
  for (const most of MOST_NODES) {
    const nodes = [...nodesOf(model, part, most).map(node => described(model, node)), ...boundary(model, part)];
    const edges = graphEdges(model, nodes);
    const placed = await layout(nodes.map(() => ({ width: WIDE, height: HIGH })), edges);
    if (placed === undefined) return undefined;
    if (placed) return part.picture = { nodes, edges, placed };
  }
  return null;
}
