const { slices, texts, operations, lanes } = data;
const count = slices.lane.length, makespan = Math.max(data.makespan, 1e-9);
const text = (column, i) => texts[slices[column][i]];
const WAIT = "#dc2626", HIDDEN = "#16a34a", MEMORY = "#d97706";
const AXIS = 20, ROWS = 200;
const isMain = lane => lanes[lane].startsWith("main");

// -- units -------------------------------------------------------------------------------------

function time(cycles) {
  if (data.secondsPerCycle === null)
    return cycles.toLocaleString("en", { maximumFractionDigits: cycles < 100 ? 1 : 0 }) + " cycles";
  const seconds = cycles * data.secondsPerCycle;
  if (seconds <= 0) return "0";
  for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]])
    if (Math.abs(seconds) >= .9995 * scale) return (seconds / scale).toFixed(scale < 1 ? 1 : 2) + " " + unit;
  return (seconds * 1e9).toFixed(0) + " ns";
}

// -- lanes -------------------------------------------------------------------------------------

const heights = lanes.map((_, lane) => isMain(lane) ? 30 : 18), tops = [];
let bottom = AXIS;
for (const height of heights) { tops.push(bottom); bottom += height + 4; }
$("lanes").style.height = bottom + 2 + "px";
const first = lanes.map(() => count);  // the slices of a lane are neighbors
for (let i = count - 1; i >= 0; i--) first[slices.lane[i]] = i;
const sliceOf = new Map();  // by operation, what is drawn of it beside the main stream
for (let i = 0; i < count; i++)
  if (slices.operation[i] >= 0 && !slices.wait[i]) sliceOf.set(slices.operation[i], i);

// -- state -------------------------------------------------------------------------------------

const view = { left: 0, right: makespan };
let selected = -1, matches = null;

function applyFilter() {
  const wanted = $("filter").value.trim().toLowerCase();
  matches = null;
  if (wanted) {
    const hits = texts.map(value => value.toLowerCase().includes(wanted));
    matches = new Uint8Array(count);
    for (let i = 0; i < count; i++)
      matches[i] = ["name", "op_name", "opcode"].some(column => hits[slices[column][i]]);
  }
  list(wanted);
  redraw();
}

function colorOf(i) {
  const by = $("color").value;
  if (slices.operation[i] >= 0) return HIDDEN;
  if (by === "scope") return colorOfText(text("op_name", i).split("/").slice(0, 3).join("/"));
  return colorOfText(by === "name" ? text("name", i).replace(/[.\d]+/g, "") : text(by, i));
}

// -- drawing -----------------------------------------------------------------------------------

const xOf = (t, width) => LABELS + (t - view.left) / (view.right - view.left) * (width - LABELS);
const timeAt = (x, width) => view.left + (x - LABELS) / (width - LABELS) * (view.right - view.left);

// A time with as many digits as tell it from one a `step` away.
function tick(cycles, step) {
  if (data.secondsPerCycle === null) return cycles.toLocaleString("en", { maximumFractionDigits: 3 });
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]
    .find(([scale]) => cycles * data.secondsPerCycle >= .9995 * scale) ?? [1e-6, "us"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step * data.secondsPerCycle / scale) - 1e-9));
  return (cycles * data.secondsPerCycle / scale).toFixed(Math.min(digits, 9)) + " " + unit;
}

function drawAxis({ context, width, height, ink }) {
  const raw = (view.right - view.left) / Math.max(width / 130, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find(k => k * power >= raw));
  context.fillStyle = ink;
  context.textAlign = "center";
  for (let t = Math.ceil(view.left / step) * step; t <= view.right; t += step) {
    const x = xOf(t, width);
    context.globalAlpha = .8;
    if (x > LABELS + 24 && x < width - 30) context.fillText(tick(t, step), x, 12);
    context.globalAlpha = .12;
    context.fillRect(x, AXIS - 4, 1, height);
  }
  context.globalAlpha = 1;
}

// The first slice of a lane that ends after the left edge.
function firstVisible(lane, end) {
  let low = first[lane], high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.end[middle] < view.left) low = middle + 1; else high = middle;
  }
  return low;
}

function drawLane(picture, lane) {
  const { context, width } = picture, top = tops[lane], height = heights[lane];
  let end = first[lane], drawn = -1, drawnWait = -1;
  while (end < count && slices.lane[end] === lane) end++;
  for (let i = firstVisible(lane, end); i < end && slices.begin[i] < view.right; i++) {
    const isWait = slices.wait[i] === 1, isDim = matches !== null && !matches[i];
    const x = Math.max(xOf(slices.begin[i], width), LABELS);
    const right = Math.min(xOf(slices.end[i], width), width);
    // What is thinner than a pixel is drawn once per pixel; waiting shows through.
    if (right < (isWait ? drawnWait : drawn) + .5) continue;
    const wide = Math.max(right - x, .8);
    drawn = x + wide;
    if (isWait) drawnWait = drawn;
    context.globalAlpha = isDim ? .15 : .9;
    context.fillStyle = isWait ? WAIT : colorOf(i);
    context.fillRect(x, top, wide > 3 ? wide - .5 : wide, height);
    const operation = operations[slices.operation[i]];
    if (operation && !isWait && operation.exposed > 0 && operation.at) {
      const from = Math.max(xOf(operation.at[1], width), LABELS);
      context.fillStyle = WAIT;
      if (right > from) context.fillRect(from, top, Math.max(right - from, .8), height);
    }
    const room = Math.floor((wide - 6) / 6);
    if (room < 4 || isDim) continue;
    context.globalAlpha = 1;
    context.fillStyle = "#fff";
    context.textAlign = "left";
    const label = isWait ? "wait" : text("name", i);
    context.fillText(label.slice(0, room), x + 3, top + height / 2 + 4);
  }
}

function drawLanes() {
  const picture = prepare($("lanes")), { context, width, ink } = picture;
  drawAxis(picture);
  lanes.forEach((name, lane) => {
    context.globalAlpha = .06;
    context.fillStyle = ink;
    context.fillRect(LABELS, tops[lane], width - LABELS, heights[lane]);
    context.globalAlpha = .8;
    context.textAlign = "right";
    context.fillText(name.slice(0, 13), LABELS - 6, tops[lane] + heights[lane] / 2 + 4);
    context.globalAlpha = 1;
    drawLane(picture, lane);
  });
  context.globalAlpha = 1;
  if (selected < 0) return;
  context.strokeStyle = ink;
  context.lineWidth = 2;
  for (const i of [selected, sliceOf.get(slices.operation[selected])]) {
    if (i === undefined) continue;
    const x = Math.max(xOf(slices.begin[i], width), LABELS), right = xOf(slices.end[i], width);
    if (right >= LABELS && x < width)
      context.strokeRect(x, tops[slices.lane[i]], Math.max(right - x, 2), heights[slices.lane[i]]);
  }
}

function memoryAt(t) {
  let low = 0, high = data.memory.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.memory[middle][0] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function drawMemory() {
  const picture = prepare($("memory")), { context, width, height } = picture;
  const top = Math.max(data.peak, 1) * 1.05, yOf = size => height - size / top * height;
  axis(picture, 0, top, yOf);
  context.fillStyle = MEMORY;
  context.globalAlpha = .75;
  for (let x = LABELS; x < width; x++) {
    let k = Math.max(memoryAt(timeAt(x, width)), 0), most = 0;
    const end = timeAt(x + 1, width);
    do most = Math.max(most, data.memory[k]?.[1] ?? 0);
    while (++k < data.memory.length && data.memory[k][0] < end);
    context.fillRect(x, yOf(most), 1, height - yOf(most));
  }
  context.globalAlpha = 1;
  if (data.limit === null || data.limit > top) return;
  context.fillStyle = WAIT;
  context.fillRect(LABELS, yOf(data.limit), width - LABELS, 2);
}

let isWaiting = false;
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawLanes(); drawMemory(); });
}

// -- what is selected --------------------------------------------------------------------------

const explanation = operation => [operation.why,
  operation.under.length ? "under it: " + operation.under.map(([name, t]) => `%${name} ${time(t)}`).join(", ")
    : "nothing runs under it"];

function select(i) {
  selected = i;
  const operation = i < 0 ? null : operations[slices.operation[i]];
  $("selected").textContent = i < 0 ? "" : operation ? `%${operation.start} … %${operation.done}`
    : `%${text("name", i)}: ${time(slices.end[i] - slices.begin[i])}`;
  $("why").textContent = i < 0 ? "" : operation
    ? [`${time(operation.latency)}: ${time(operation.hidden)} hidden, ${time(operation.exposed)} exposed`,
      ...explanation(operation), operation.opName].filter(Boolean).join("\n")
    : [`${text("opcode", i)} in %${text("computation", i)}`, text("op_name", i)].filter(Boolean).join("\n");
  redraw();
}

function show(number) {
  const { at } = operations[number];
  if (!at) return;
  const margin = Math.max((at[2] - at[0]) * .6, makespan * 1e-7);
  setTime(at[0] - margin, at[2] + margin);
  select(sliceOf.get(number) ?? -1);
  $("lanes").scrollIntoView({ block: "nearest" });
}

function list(wanted) {
  const chosen = [];
  operations.forEach((operation, number) => {
    const words = `${operation.start} ${operation.opName} ${operation.kind}`.toLowerCase();
    if (chosen.length < ROWS && words.includes(wanted)) chosen.push(number);
  });
  $("rows").replaceChildren(...chosen.map(number => {
    const o = operations[number];
    return tableRow([o.exposed > 0 ? time(o.exposed) : "", time(o.hidden), time(o.latency), o.runs, bytes(o.bytes),
      o.group ?? "", o.kind, "%" + o.start, "%" + o.computation, o.why], () => show(number));
  }));
}

// -- moving about ------------------------------------------------------------------------------

function setTime(left, right) {
  const length = Math.min(Math.max(right - left, makespan * 1e-8), makespan);
  view.left = Math.min(Math.max(left, 0), makespan - length);
  view.right = view.left + length;
  redraw();
}

const reset = () => { select(-1); setTime(0, makespan); };

function sliceAt(event) {
  const width = $("lanes").clientWidth, t = timeAt(event.offsetX, width);
  const slack = 2 * (view.right - view.left) / width;
  const lane = tops.findIndex((top, k) => event.offsetY >= top && event.offsetY < top + heights[k] + 4);
  if (lane < 0) return -1;
  let best = -1;
  for (let i = firstVisible(lane, count); i < count && slices.lane[i] === lane; i++) {
    if (slices.begin[i] > t + slack) break;
    if (slices.end[i] < t - slack) continue;
    const isBetter = best < 0 || slices.wait[i] > slices.wait[best]
      || slices.end[i] - slices.begin[i] > slices.end[best] - slices.begin[best];
    if (isBetter) best = i;
    if (slices.begin[i] <= t && t < slices.end[i]) return i;
  }
  return best;
}

function laneLines(event) {
  const i = sliceAt(event);
  if (i < 0) return null;
  const operation = operations[slices.operation[i]];
  const place = `${text("opcode", i)} in %${text("computation", i)}`;
  if (!operation)
    return [`%${text("name", i)}: ${time(slices.end[i] - slices.begin[i])}`, place, text("op_name", i),
      `from ${time(slices.begin[i])}`];
  return [slices.wait[i] ? `waits ${time(operation.exposed)} for %${operation.start}` : `%${operation.start}`,
    place, `${bytes(operation.bytes)}${operation.group ? ` on ${operation.group} devices` : ""}`
      + `, ${operation.runs} run${operation.runs === 1 ? "" : "s"}`,
    `${time(operation.latency)}: ${time(operation.hidden)} hidden, ${time(operation.exposed)} exposed`,
    ...explanation(operation), operation.opName];
}

function memoryLines(event) {
  const t = timeAt(event.offsetX, $("memory").clientWidth), k = memoryAt(t);
  return k < 0 ? null : [`${bytes(data.memory[k][1])} in use at ${time(t)}`];
}

const handle = (canvas, lines, choose) => navigate(canvas, {
  lines, reset, choose,
  view: () => ({ ...view }),
  zoom(event, factor) {
    const middle = timeAt(event.offsetX, canvas.clientWidth);
    setTime(middle - (middle - view.left) * factor, middle + (view.right - middle) * factor);
  },
  move(dx, _, from) {
    const moved = dx / (canvas.clientWidth - LABELS) * (from.right - from.left);
    setTime(from.left - moved, from.right - moved);
  },
});

handle($("lanes"), laneLines, event => select(sliceAt(event)));
handle($("memory"), memoryLines, () => {});
$("filter").addEventListener("input", applyFilter);
$("color").addEventListener("change", redraw);
data.computations.forEach(({ name, runs }, k) =>
  $("computation").append(new Option(`%${name}` + (runs === 1 ? "" : `, one of ${runs} runs`), k)));
$("computation").addEventListener("change", () => {
  const { begin, end } = data.computations[$("computation").value];
  setTime(begin, end);
});
$("worst").onclick = () => operations.length && show(0);
$("all").onclick = reset;
addEventListener("resize", redraw);
for (const [label, color] of [["waits / exposed", WAIT], ["in flight, hidden", HIDDEN]]) {
  const box = document.createElement("i");
  box.style.background = color;
  $("legend").append(box, label);
}
list("");
redraw();
