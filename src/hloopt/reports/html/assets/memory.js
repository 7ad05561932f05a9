const { buffers, allocations, setAside } = data;
const bufferCount = buffers.size.length, positions = Math.max(data.positions, 1);
const asideColumns = textColumns(setAside), columns = {
  ...textColumns(buffers), name: column({ texts: data.instructions.texts, at: buffers.name }),
};
const text = (name, i) => columns[name].textAt(i);
const asideText = (name, i) => asideColumns[name].textAt(i);
const kinds = column(allocations.kind), instructions = column(data.instructions);
const ROWS = 100;

// -- data --------------------------------------------------------------------------------------

const start = new Int32Array(bufferCount), end = new Int32Array(bufferCount);  // both included
for (let i = 0, at = 0; i < bufferCount; i++) {
  start[i] = at += buffers.start[i];
  end[i] = at + buffers.length[i] - 1;
}
const inTimeline = i => buffers.inTimeline[i] === "1";
const asideKinds = data.setAsideKinds.map(kind => ({ ...kind, size: 0 }));
for (let i = 0; i < setAside.size.length; i++)
  asideKinds.find(({ kind }) => kind === asideText("kind", i)).size += setAside.size[i];
const fillOfKind = new Map(asideKinds.map(({ kind, fill }) => [kind, fill]));

// Spaces of addresses to look at: each allocation of temporaries, and all one above the other.
const spaces = [];
allocations.size.forEach((size, number) => {
  const space = allocations.color[number];
  if (kinds.textAt(number) === "temporary" && size)
    spaces.push({ label: "temporaries" + (space ? `, S(${space})` : ""),
      size, base: new Map([[number, 0]]) });
});
spaces.sort((a, b) => b.size - a.size);
const everything = { label: "all allocations", size: 0, base: new Map() };
allocations.size.map((size, number) => ({ size, number, kind: kinds.textAt(number) }))
  .filter(({ size, kind }) => size && kind !== "thread-local")
  .sort((a, b) => (a.kind === "temporary") - (b.kind === "temporary") || b.size - a.size)
  .forEach(({ size, number }) => {
    everything.base.set(number, everything.size);
    everything.size += size;
  });
spaces.push(everything);
spaces.forEach((space, k) => $("space").append(new Option(`${space.label}: ${bytes(space.size)}`, k)));

// -- stacks ------------------------------------------------------------------------------------

// What is set aside throughout, then groups of temporaries, from the bottom to the top. `above`
// is where each ends, by position.
let stacks = [], grouping = null;

const groupOf = i => +grouping.groups[columns[grouping.column].numberAt(i)];
const fillOfGroup = group =>
  group < grouping.labels.length - grouping.hasRest ? "c" + (group + 1) : "other";
const fillOf = i => fillOfKind.get(text("kind", i)) ?? fillOfGroup(groupOf(i));

// Bytes alive by position, of buffers that the timeline counts.
function sumOver(isWanted) {
  const change = new Float64Array(positions + 1);
  for (let i = 0; i < bufferCount; i++) {
    if (!inTimeline(i) || !isWanted(i)) continue;
    change[start[i]] += buffers.size[i];
    change[Math.min(end[i] + 1, positions)] -= buffers.size[i];
  }
  for (let p = 1; p <= positions; p++) change[p] += change[p - 1];
  return change.subarray(0, positions);
}

function group(number) {
  grouping = data.groupings[number];
  stacks = asideKinds.filter(({ size }) => size)
    .map(({ label, fill, size }) => ({ label, fill, sizes: new Float64Array(positions).fill(size) }));
  grouping.labels.forEach((label, k) =>
    stacks.push({ label, fill: fillOfGroup(k), sizes: sumOver(i => groupOf(i) === k) }));
  const below = new Float64Array(positions);
  for (const stack of stacks) {
    for (let p = 0; p < positions; p++) below[p] += stack.sizes[p];
    stack.above = below.slice();
  }
  list();
  redraw();
}

const total = p => stacks.length ? stacks[stacks.length - 1].above[p] : 0;

// -- state -------------------------------------------------------------------------------------

const view = { left: 0, right: positions, bottom: 0, top: 1 };
let space = spaces[0], at = data.peakPosition, matches = null, found = null, selected = -1, shown = [];

function chooseSpace(number) {
  space = spaces[number];
  shown = [];
  for (let i = 0; i < bufferCount; i++) if (space.base.has(buffers.allocation[i])) shown.push(i);
  shown.sort((a, b) => buffers.size[b] - buffers.size[a]);
  view.bottom = 0;
  view.top = Math.max(space.size, 1);
  list();
  redraw();
}

const SEARCHED = ["name", "op_name", "source", "shape", "opcode"];
let asideMatches = null;

function applyFilter() {
  const wanted = $("filter").value.trim().toLowerCase();
  matches = found = asideMatches = null;
  if (wanted) {
    matches = search(columns, SEARCHED, wanted, bufferCount);
    asideMatches = search(asideColumns, SEARCHED, wanted, setAside.size.length);
    let aside = 0;
    for (let i = 0; i < setAside.size.length; i++) if (asideMatches[i]) aside += setAside.size[i];
    found = sumOver(i => matches[i]).map(size => size + aside);
  }
  list();
  redraw();
}

// -- drawing -----------------------------------------------------------------------------------

const xOf = (p, width) => LABELS + (p - view.left) / (view.right - view.left) * (width - LABELS);
const positionAt = (x, width) =>
  view.left + (x - LABELS) / (width - LABELS) * (view.right - view.left);

// Marks of the peak and of the chosen position, over the whole height.
function marks({ context, width, height }, from) {
  for (const [position, name] of [[at, "ink"], [data.peakPosition, "bad"]]) {
    if (position < view.left || position >= view.right) continue;
    context.fillStyle = color(name);
    context.fillRect(xOf(position + .5, width), from, 1, height);
  }
}

// Text in front of the picture, on a ground of its own.
function caption({ context, width }, words, x, y) {
  const wide = context.measureText(words).width + 6, left = Math.min(Math.max(x, LABELS), width - wide);
  context.fillStyle = color("page");
  context.fillRect(left, y - 11, wide, 14);
  context.fillStyle = color("bad");
  context.textAlign = "left";
  context.fillText(words, left + 3, y);
}

function drawTime() {
  const picture = prepare($("time")), { context, width, height } = picture;
  const top = Math.max(data.peak, 1) * 1.05;
  const yOf = size => height - size / top * (height - AXIS);
  timeAxis(picture, view, xOf, p => p.toLocaleString("en"), 1);
  sizeAxis(picture, 0, top, yOf);
  for (let x = LABELS; x < width; x++) {
    const first = Math.max(Math.floor(positionAt(x, width)), 0);
    const last = Math.min(Math.max(first + 1, Math.ceil(positionAt(x + 1, width))), positions);
    let most = first, mostFound = first;  // the fullest position of this column of pixels
    for (let p = first; p < last; p++) {
      if (total(p) > total(most)) most = p;
      if (found && found[p] > found[mostFound]) mostFound = p;
    }
    if (most >= positions) continue;
    context.globalAlpha = found ? .3 : 1;
    let y = height;
    for (const { fill, above } of stacks) {
      const upper = yOf(above[most]);
      context.fillStyle = color(fill);
      context.fillRect(x, upper, 1, y - upper);
      y = upper;
    }
    context.globalAlpha = 1;
    if (!found) continue;
    context.fillStyle = color("ink");
    context.fillRect(x, yOf(found[mostFound]), 1, height - yOf(found[mostFound]));
  }
  if (data.limit !== null && data.limit <= top) {
    context.fillStyle = color("bad");
    context.fillRect(LABELS, yOf(data.limit), width - LABELS, 2);
    caption(picture, "limit " + bytes(data.limit), LABELS + 4, yOf(data.limit) + 13);
  }
  marks(picture, AXIS);
  if (data.peakPosition >= view.left && data.peakPosition < view.right)
    caption(picture, "peak " + bytes(data.peak), xOf(data.peakPosition + .5, width) + 3, AXIS + 10);
}

const boxes = [];  // what is drawn, the smallest last: for the pointer

function drawPacking() {
  const picture = prepare($("packing")), { context, width, height } = picture;
  const yOf = size => height - (size - view.bottom) / (view.top - view.bottom) * height;
  sizeAxis(picture, view.bottom, view.top, yOf);
  context.save();
  context.beginPath();
  context.rect(LABELS, 0, width - LABELS, height);
  context.clip();
  boxes.length = 0;
  for (const wanted of matches ? [0, 1] : [1]) {  // what the filter finds lies above the rest
    const pixels = Math.ceil(width) * Math.ceil(height);  // how far a thin box reaches from each
    const taken = { down: new Uint16Array(pixels), right: new Uint16Array(pixels) };
    context.globalAlpha = matches && !wanted ? .15 : 1;
    for (const i of shown)
      if (!matches || matches[i] === wanted) drawBox(i, context, width, height, yOf, taken, !wanted);
  }
  if (selected >= 0 && space.base.has(buffers.allocation[selected])) {
    const base = space.base.get(buffers.allocation[selected]) + buffers.offset[selected];
    const x = xOf(start[selected], width), y = yOf(base + buffers.size[selected]);
    context.globalAlpha = 1;
    context.strokeStyle = color("ink");
    context.lineWidth = 3;
    context.strokeRect(x, y, xOf(end[selected] + 1, width) - x, yOf(base) - y);
  }
  context.restore();
  marks(picture, 0);
}

// What is thinner than two pixels is drawn once where it begins: it would not show more often.
function drawBox(i, context, width, height, yOf, taken, isDim) {
  const base = space.base.get(buffers.allocation[i]) + buffers.offset[i];
  if (end[i] < view.left || start[i] >= view.right) return;
  if (base >= view.top || base + buffers.size[i] <= view.bottom) return;
  const x = xOf(start[i], width), y = yOf(base + buffers.size[i]);
  const wide = Math.max(xOf(end[i] + 1, width) - x, .7);
  const high = Math.max(yOf(base) - y, .7);
  if (wide < 2 || high < 2) {
    const pixel = Math.min(Math.max(y | 0, 0), Math.ceil(height) - 1) * Math.ceil(width) + Math.max(x | 0, 0);
    const [reach, far] = wide < 2 ? [taken.down, Math.ceil(y + high)] : [taken.right, Math.ceil(x + wide)];
    if (reach[pixel] >= far) return;
    reach[pixel] = Math.max(far, 0);
  }
  const fill = fillOf(i);
  context.fillStyle = color(fill);
  context.fillRect(x, y, wide > 4 ? wide - .5 : wide, high > 4 ? high - .5 : high);
  boxes.push(i);
  if (high < 13 || isDim) return;
  const left = Math.max(x, LABELS), right = Math.min(x + wide, width);
  boxLabel(context, text("name", i), fill, left, Math.min(Math.max(y, 0) + 11, height - 3), right - left);
}

draw = () => { drawTime(); drawPacking(); };

// -- legends and what is alive -----------------------------------------------------------------

function legends() {
  const moment = at === data.peakPosition ? "at the peak" : `at position ${at.toLocaleString("en")}`;
  const entries = stacks.map(({ label, fill, sizes }) => ({ fill, label, figure: bytes(sizes[at] ?? 0) }));
  if (found) entries.push({ fill: "ink", label: "what the filter finds", figure: bytes(found[at]) });
  legend($("timeLegend"), entries, moment + ":");
  const counts = new Map();
  for (const i of shown) {
    const kind = text("kind", i), label = fillOfKind.has(kind)
      ? asideKinds.find(aside => aside.kind === kind).label : grouping.labels[groupOf(i)];
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const labels = [...asideKinds, ...grouping.labels.map((label, k) => ({ label, fill: fillOfGroup(k) }))];
  legend($("packingLegend"), labels.filter(({ label }) => counts.has(label)).map(({ label, fill }) =>
    ({ fill, label, figure: count(counts.get(label), "buffer") })));
}

function list() {
  if (!grouping) return;
  legends();
  const alive = [];
  for (let i = 0; i < bufferCount; i++)
    if (inTimeline(i) && start[i] <= at && at <= end[i] && (!matches || matches[i]))
      alive.push({ i, size: buffers.size[i] });
  for (let i = 0; i < setAside.size.length; i++)
    if (!asideMatches || asideMatches[i]) alive.push({ aside: i, size: setAside.size[i] });
  alive.sort((a, b) => b.size - a.size);
  const sum = alive.reduce((all, { size }) => all + size, 0);
  const name = data.positions ? instructions.textAt(at) : "";
  $("alive").textContent = count(alive.length, "buffer") + (matches ? " of the filter" : "")
    + `, ${bytes(sum)}, alive at position ${at.toLocaleString("en")}`
    + ` of ${data.positions.toLocaleString("en")}${name ? `: %${name}` : ""}`
    + (at === data.peakPosition ? " (the peak)" : "")
    + (alive.length > ROWS ? `; the ${ROWS} largest` : "");
  const top = alive.slice(0, ROWS);
  fillRows($("rows"), top.map(({ i, aside, size }) => {
    const of = name => aside === undefined ? text(name, i) : asideText(name, aside);
    const part = data.hasShares ? [share(size, data.peak)] : [];
    return [bytes(size), ...part, of("kind"), of("shape"),
      aside === undefined ? start[i] : 0, aside === undefined ? end[i] : positions - 1,
      "%" + of("name"), of("op_name"), of("source")];
  }), row => {
    const { i, aside } = top[row];
    if (aside !== undefined) return announce(nameOf(asideText("name", aside)));
    show(i);
    announce(nameOf(text("name", i)), text("computation", i));
  });
}

// The instruction that a buffer is named after.
const nameOf = buffer => buffer.replace(/\{[^}]*\}$/, "");

// Select a buffer, in a space that has it.
function selectBuffer(i) {
  selected = i;
  if (!space.base.has(buffers.allocation[i])) {
    $("space").value = spaces.length - 1;
    chooseSpace(spaces.length - 1);
  }
  redraw();
}

// Zoom to a buffer's lifetime.
function show(i) {
  selectBuffer(i);
  const margin = Math.max((end[i] - start[i]) * .2, 5);
  setTime(start[i] - margin, end[i] + 1 + margin);
  $("packing").scrollIntoView({ block: "nearest" });
}

function choose(position) {
  at = Math.min(Math.max(position, 0), positions - 1);
  list();
  redraw();
}

// -- moving about ------------------------------------------------------------------------------

function setTime(left, right) {
  const length = Math.min(Math.max(right - left, 2), positions);
  view.left = Math.min(Math.max(left, 0), positions - length);
  view.right = view.left + length;
  redraw();
}

function setAddresses(bottom, top) {
  const length = Math.min(Math.max(top - bottom, 64), Math.max(space.size, 1));
  view.bottom = Math.min(Math.max(bottom, 0), Math.max(space.size, 1) - length);
  view.top = view.bottom + length;
  redraw();
}

function reset() {
  selected = -1;
  setAddresses(0, space.size);
  setTime(0, positions);
}

const handle = (canvas, lines) => navigate(canvas, {
  lines, reset,
  view: () => ({ ...view }),
  zoom(event, factor) {
    if (event.shiftKey && canvas === $("packing")) {
      const middle = view.top - event.offsetY / canvas.clientHeight * (view.top - view.bottom);
      setAddresses(middle - (middle - view.bottom) * factor, middle + (view.top - middle) * factor);
    } else {
      const middle = positionAt(event.offsetX, canvas.clientWidth);
      setTime(middle - (middle - view.left) * factor, middle + (view.right - middle) * factor);
    }
  },
  move(dx, dy, from) {
    const positionsMoved = dx / (canvas.clientWidth - LABELS) * (from.right - from.left);
    setTime(from.left - positionsMoved, from.right - positionsMoved);
    if (canvas === $("packing")) {
      const bytesMoved = dy / canvas.clientHeight * (from.top - from.bottom);
      setAddresses(from.bottom + bytesMoved, from.top + bytesMoved);
    }
  },
  choose(event) {
    choose(Math.floor(positionAt(event.offsetX, canvas.clientWidth)));
    if (data.positions) announce(instructions.textAt(at));
  },
});

function timeLines(event) {
  const position = Math.floor(positionAt(event.offsetX, $("time").clientWidth));
  if (position < 0 || position >= data.positions) return null;
  return [`position ${position.toLocaleString("en")}: %${instructions.textAt(position)}`,
    `${bytes(total(position))} in use`,
    ...stacks.filter(({ sizes }) => sizes[position]).reverse()
      .map(({ label, sizes }) => `${bytes(sizes[position])} ${tail(label, 60)}`),
    found && `${bytes(found[position])} of the filter`];
}

function packingLines(event) {
  const canvas = $("packing"), position = positionAt(event.offsetX, canvas.clientWidth);
  const address = view.top - event.offsetY / canvas.clientHeight * (view.top - view.bottom);
  const slack = 2 * (view.right - view.left) / canvas.clientWidth;
  for (let k = boxes.length - 1; k >= 0; k--) {
    const i = boxes[k], base = space.base.get(buffers.allocation[i]) + buffers.offset[i];
    if (address < base || address >= base + buffers.size[i]) continue;
    if (position < start[i] - slack || position > end[i] + 1 + slack) continue;
    return [`%${text("name", i)} (${text("opcode", i)}) in %${text("computation", i)}`,
      text("shape", i), `${bytes(buffers.size[i])}, ${text("kind", i)}`, text("op_name", i),
      text("source", i), `positions ${start[i].toLocaleString("en")} to ${end[i].toLocaleString("en")}`,
      `allocation ${buffers.allocation[i]} + ${buffers.offset[i].toLocaleString("en")}`];
  }
  return null;
}

handle($("time"), timeLines);
handle($("packing"), packingLines);
$("filter").addEventListener("input", applyFilter);
$("by").addEventListener("change", () => group($("by").value));
$("space").addEventListener("change", () => chooseSpace($("space").value));
$("peak").onclick = () => {
  const half = Math.max((view.right - view.left) / 8, 10);
  setTime(data.peakPosition - half, data.peakPosition + half);
  choose(data.peakPosition);
};
$("all").onclick = reset;
data.groupings.forEach(({ name }, k) => $("by").append(new Option(name, k)));
$("by").value = data.by;
chooseSpace(0);
group(data.by);

// The buffer of an instruction, as the page around this one chooses it: the positions that are shown
// stay where it lives in them.
onSelect((name, computation) => {
  for (let i = 0; i < bufferCount; i++) {
    if (nameOf(text("name", i)) !== name || text("computation", i) !== computation) continue;
    if (end[i] < view.left || start[i] >= view.right) return show(i);
    return selectBuffer(i);
  }
  selected = -1;
  redraw();
});
