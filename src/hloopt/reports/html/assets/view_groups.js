// The nodes of a graph: instructions, and those of a scope, of repeated scopes or of a stretch of the
// order as one.

// The nodes of the instructions `members`, which are sorted, of a computation, within `scope`.
function graphNodes(model, members, scope, most) {
  const groups = new Map(), nodes = [];
  for (const i of members) {
    if (model.text("opcode", i) === "constant") continue;
    const inner = childScope(model, model.scope(i), scope);
    if (inner === null) nodes.push({ kind: "instruction", members: [i] });
    else if (groups.has(inner)) groups.get(inner).members.push(i);
    else {
      const node = { kind: "scope", scope: inner, members: [i] };
      groups.set(inner, node);
      nodes.push(node);
    }
  }
  const alone = nodes.map(node => node.members.length === 1 ? { kind: "instruction", members: node.members } : node);
  return chunked(repeatsFolded(model, alikeFolded(model, alone)), most);
}

const FEW = 6;  // parameters, or elements of one tuple, that are nodes of their own

// Parameters, and elements of one tuple, as one node where they are many.
function alikeFolded(model, nodes) {
  const alike = new Map();
  for (const node of nodes) {
    const [i] = node.members, opcode = model.text("opcode", i);
    if (node.kind !== "instruction" || !["parameter", "get-tuple-element"].includes(opcode)) continue;
    const key = opcode === "parameter" ? opcode : `elements of %${model.name(model.operands(i)[0])}`;
    if (alike.has(key)) alike.get(key).push(node); else alike.set(key, [node]);
  }
  const replaced = new Map();
  for (const [key, all] of alike) {
    if (all.length <= FEW || all.length === nodes.length) continue;
    const whole = { kind: "alike", name: key, members: all.flatMap(({ members }) => members) };
    all.forEach((node, k) => replaced.set(node, k ? null : whole));
  }
  return nodes.map(node => replaced.has(node) ? replaced.get(node) : node).filter(Boolean);
}

// The scope right below `outer` that an inner one is in; null where it is `outer` or outside of it.
function childScope(model, inner, outer) {
  let at = inner;
  while (at !== outer && at) {
    const parent = model.scopeParent[at];
    if (parent === outer) return at;
    at = parent;
  }
  return null;
}

// Scopes whose names differ in numbers only, and which have the same opcodes, as one node.
function repeatsFolded(model, nodes) {
  const repeats = new Map(), opcodes = model.columns.opcode;
  for (const node of nodes) {
    if (node.kind !== "scope") continue;
    const name = model.scopeName(node.scope).replace(/\d+/g, "*");
    const key = name + "\n" + Uint32Array.from(node.members, opcodes.numberAt).sort().join();
    if (repeats.has(key)) repeats.get(key).push(node); else repeats.set(key, [node]);
  }
  const replaced = new Map();
  for (const [key, alike] of repeats) {
    if (alike.length < 2) continue;
    const whole = {
      kind: "repeat", name: key.slice(0, key.indexOf("\n")), scopes: alike.map(({ scope }) => scope),
      members: inOrder(alike.flatMap(({ members }) => members)),
    };
    alike.forEach((node, k) => replaced.set(node, k ? null : whole));
  }
  return nodes.map(node => replaced.has(node) ? replaced.get(node) : node).filter(Boolean);
}

const inOrder = members => [...Uint32Array.from(members).sort()];

// At most so many nodes: as few stretches of the order as have no more inside, where there are more.
function chunked(nodes, most) {
  if (nodes.length <= most) return nodes;
  const size = Math.max(most, Math.ceil(nodes.length / most)), chunks = [];
  for (let k = 0; k < nodes.length; k += size) {
    const part = nodes.slice(k, k + size);
    chunks.push(part.length === 1 ? part[0] : {
      kind: "stretch", members: inOrder(part.flatMap(({ members }) => members)),
    });
  }
  return chunks;
}

// Pairs of nodes between which values go, with their number; what is read from elsewhere is left out.
function graphEdges({ count, begin, read }, nodes) {
  const nodeOf = new Int32Array(count).fill(-1), pairs = [];
  nodes.forEach(({ members }, n) => { for (const i of members) nodeOf[i] = n; });
  nodes.forEach(({ members }, n) => {
    for (const i of members)
      for (let k = begin[i]; k < begin[i + 1]; k++) {
        const from = nodeOf[read[k]];
        if (from >= 0 && from !== n) pairs.push([from, n]);
      }
  });
  return counted(pairs, nodes.length);
}

// Pairs of numbers below a limit, each once with how often it is there.
function counted(pairs, limit) {
  const counts = new Map();
  for (const [from, to] of pairs) counts.set(from * limit + to, (counts.get(from * limit + to) ?? 0) + 1);
  return [...counts].map(([key, count]) => ({ from: Math.floor(key / limit), to: key % limit, count }));
}

// The instructions around `members` that they read, or that read them, but for constants.
function outside(model, members, around) {
  const within = new Uint8Array(model.count), found = new Set();
  for (const i of members) within[i] = 1;
  for (const i of members)
    for (const o of around(i)) if (!within[o] && model.text("opcode", o) !== "constant") found.add(o);
  return [...found].sort((a, b) => a - b);
}
