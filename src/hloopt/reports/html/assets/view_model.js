// The columns of a module made ready: instructions and computations are numbers.
function readModel(columns) {
  const { instructions, computations, scopes } = columns;
  const texts = textColumns(instructions), names = column(computations.name);
  const count = instructions.bytes.length, places = computations.size.length;
  const first = new Int32Array(places + 1);
  computations.size.forEach((size, c) => { first[c + 1] = first[c] + size; });
  const home = new Int32Array(count);
  for (let c = 0; c < places; c++) home.fill(c, first[c], first[c + 1]);
  const flow = edges(count, instructions);
  const calls = new Map(), callers = new Map();
  for (let k = 0; k < columns.calls.length; k += 2) {
    const [i, c] = [columns.calls[k], columns.calls[k + 1]];
    calls.set(i, [...calls.get(i) ?? [], c]);
    callers.set(c, [...callers.get(c) ?? [], i]);
  }
  const op_name = texts.op_name, scopeNames = column(scopes.name);
  const byName = new Map();
  for (let i = count - 1; i >= 0; i--) byName.set(texts.name.textAt(i), i);
  return {
    count, first, home, places, ...flow, byName, columns: texts,
    bytes: instructions.bytes, times: columns.times, guessed: new Set(columns.times?.guessed), runs: computations.runs,
    isScheduled: columns.isScheduled, scopeCount: scopes.parent.length, scopeParent: scopes.parent,
    alive: columns.alive && new Set(columns.alive),
    changeOf: new Map(Object.entries(columns.changes).flatMap(([kind, all]) => all.map(i => [i, kind]))),
    origins: columns.origins,
    kind: i => texts.kind.textAt(i),
    name: i => texts.name.textAt(i),
    text: (name, i) => texts[name].textAt(i),
    computation: c => names.textAt(c),
    computationNames: new Map(Array.from({ length: places }, (_, c) => [names.textAt(c), c])),
    role: column(computations.role).textAt,
    scope: i => columns.scopeOf[op_name.numberAt(i)] ?? 0,
    scopeName: scopeNames.textAt,
    called: i => calls.get(i) ?? [],
    callers: c => callers.get(c) ?? [],
  };
}

// What each instruction reads and what reads it: `operands(i)` and `users(i)`; for loops over many
// instructions the operands of all, `read`, of which those of i begin at `begin[i]`.
function edges(count, { degree, operand }) {
  const begin = new Int32Array(count + 1), read = new Int32Array(operand.length);
  for (let i = 0, at = 0; i < count; i++) {
    for (let k = 0; k < degree[i]; k++, at++) read[at] = i - operand[at];
    begin[i + 1] = at;
  }
  const userBegin = new Int32Array(count + 2);
  for (const o of read) userBegin[o + 2]++;
  for (let i = 0; i < count; i++) userBegin[i + 2] += userBegin[i + 1];
  const user = new Int32Array(read.length);
  for (let i = 0; i < count; i++)
    for (let k = begin[i]; k < begin[i + 1]; k++) user[userBegin[read[k] + 1]++] = i;
  return {
    begin, read,
    operands: i => read.subarray(begin[i], begin[i + 1]),
    users: i => user.subarray(userBegin[i], userBegin[i + 1]),
  };
}
