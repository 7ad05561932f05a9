const { slices, lanes, frames } = data, operations = rowsOf(data.operations);
const sliceCount = slices.kind.length, makespan = Math.max(data.makespan, 1e-9);
const columns = textColumns(slices);
const text = (name, i) => columns[name].textAt(i);
const [WORK, WAITING, CALL, FLIGHT] = "0123";  // kinds of slices
const ROWS = 200;
const ROUNDING = .002;  // cycles: times are rounded to thousandths
const LEAST_TRIP = 16;  // pixels of a trip that is drawn by itself
const MOST_DEPTH = 200;  // calls in calls that are drawn one by one

// Times from the steps between them.
function summed(steps) {
  let sum = 0;
  return Float64Array.from(steps, step => (sum += Math.round(step * 1000)) / 1000);
}

const bounds = summed(slices.steps);  // begin and end of one slice after the other
slices.begin = bounds.filter((_, k) => k % 2 === 0);
slices.end = bounds.filter((_, k) => k % 2 === 1);
for (const { memory } of frames) memory.time = summed(memory.steps);

// -- units -------------------------------------------------------------------------------------

const time = cycles => duration(cycles, data.secondsPerCycle);

// A time with as many digits as tell it from one a `step` away.
function tick(cycles, step) {
  if (data.secondsPerCycle === null) return cycles.toLocaleString("en", { maximumFractionDigits: 3 });
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]
    .find(([scale]) => cycles * data.secondsPerCycle >= .9995 * scale) ?? [1e-6, "us"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step * data.secondsPerCycle / scale) - 1e-9));
  return (cycles * data.secondsPerCycle / scale).toFixed(Math.min(digits, 9)) + " " + unit;
}

// -- lanes -------------------------------------------------------------------------------------

const heights = lanes.map((_, lane) => lane < data.mainLanes ? 30 : 18), tops = [];
let bottom = AXIS;
for (const height of heights) { tops.push(bottom); bottom += height + 4; }
$("lanes").style.height = bottom + 2 + "px";
const flightOf = new Map();  // by operation, what is drawn of it beside the main stream
for (let i = 0; i < sliceCount; i++) if (slices.kind[i] === FLIGHT) flightOf.set(slices.operation[i], i);
const frameOf = new Map(frames.map(frame => [frame.name, frame]));
const callOf = new Map();  // by slice
for (const frame of frames) for (const call of frame.calls) callOf.set(call.slice, call);

// The first of some sorted things for which something holds.
function firstWhere(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

// -- colours -----------------------------------------------------------------------------------

let grouping = null;

// What is in flight has a colour of its own, but where colours tell kinds of work.
function fillOf(i) {
  const kind = slices.kind[i];
  if (kind === WAITING) return "wait";
  if (kind === CALL) return "call";
  if (kind === FLIGHT && !grouping.fills) return "flight";
  return fillOfGroup(+grouping.groups[columns[grouping.column].numberAt(i)]);
}

const fillOfGroup = group => grouping.fills ? grouping.fills[group]
  : group < grouping.labels.length - grouping.hasRest ? "c" + (group + 1) : "other";

// How long each lane of a frame has each colour in one run, calls included.
function add(busy, lane, fill, time) {
  if (!busy.has(lane)) busy.set(lane, new Map());
  busy.get(lane).set(fill, (busy.get(lane).get(fill) ?? 0) + time);
}

function measure() {
  for (let number = frames.length - 1; number >= 0; number--) {  // callees first
    const frame = frames[number];
    frame.busy = new Map();
    for (const [lane, from, to] of frame.lanes)
      for (let i = from; i < to; i++) {
        const length = slices.end[i] - slices.begin[i];
        const exposed = slices.kind[i] === FLIGHT ? Math.min(operations[slices.operation[i]].exposed, length) : 0;
        if (length - exposed > ROUNDING) add(frame.busy, lane, fillOf(i), length - exposed);
        if (exposed) add(frame.busy, lane, "wait", exposed);
      }
    for (const call of frame.calls) {
      call.busy = new Map();
      for (const [callee, times] of call.frames)
        for (const [lane, fills] of frames[callee].busy)
          for (const [fill, time] of fills) {
            add(call.busy, lane, fill, time * times * call.scale);
            add(frame.busy, lane, fill, time * times * call.scale);
          }
    }
  }
}

const isUsed = fill => [...frames[0].busy.values()].some(fills => fills.has(fill));

function group(number) {
  grouping = data.groupings[number];
  measure();
  legend($("lanesLegend"), [
    ...grouping.labels.map((label, k) => ({ fill: fillOfGroup(k), label,
      figure: grouping.sums[k] ? `${time(grouping.sums[k])}, ${share(grouping.sums[k], makespan)}` : "beside the main stream" })),
    ...data.waiting ? [{ fill: "wait", hatched: true, label: "waits, exposed",
      figure: `${time(data.waiting)}, ${share(data.waiting, makespan)}` }] : [],
    ...isUsed("flight") ? [{ fill: "flight", label: "in flight, hidden" }] : [],
    ...callOf.size ? [{ fill: "call", label: "loops and calls, in the lane below" }] : [],
  ]);
  redraw();
}

// -- state -------------------------------------------------------------------------------------

const view = { left: 0, right: makespan };
let selected = null, matches = null;

function applyFilter() {
  const wanted = $("filter").value.trim().toLowerCase();
  matches = wanted ? search(columns, ["name", "op_name", "opcode", "source"], wanted, sliceCount) : null;
  list(wanted);
  redraw();
}

// -- drawing -----------------------------------------------------------------------------------

const xOf = (t, width) => LABELS + (t - view.left) / (view.right - view.left) * (width - LABELS);
const timeAt = (x, width) => view.left + (x - LABELS) / (width - LABELS) * (view.right - view.left);

// The trips of a call that reach into a part of its time: numbers of the first and the last.
function tripsWithin(call, begin, scale, left, right) {
  const from = begin + call.begin * scale, period = call.period * scale;
  const rounds = Math.max(...call.frames.map(([, times]) => times));
  if (!period) return [0, -1];
  const at = t => Math.min(Math.max(Math.floor((t - from) / period), 0), rounds - 1);
  return [at(left), at(right)];
}

// What runs in a trip of a call: visit(frame, begin, scale).
function inTrip(call, begin, scale, trip, visit) {
  let at = begin + (call.begin + trip * call.period) * scale;
  for (const [callee, times] of call.frames) {
    if (trip >= times) continue;
    visit(frames[callee], at, scale * call.scale);
    at += frames[callee].duration * scale * call.scale;
  }
}

function drawFrame(picture, frame, begin, scale, depth) {
  for (const [lane, from, to] of frame.lanes) drawSlices(picture, lane, from, to, begin, scale);
  const { calls } = frame, perCycle = (picture.width - LABELS) / (view.right - view.left);
  const first = firstWhere(0, calls.length, k => begin + calls[k].end * scale >= view.left);
  for (let k = first; k < calls.length && begin + calls[k].begin * scale < view.right; k++) {
    const call = calls[k];
    if (call.period * scale * perCycle < LEAST_TRIP || depth > MOST_DEPTH)
      drawTogether(picture, call, begin, scale);
    else {
      const [low, high] = tripsWithin(call, begin, scale, view.left, view.right);
      for (let trip = low; trip <= high; trip++)
        inTrip(call, begin, scale, trip, (callee, at, inner) => drawFrame(picture, callee, at, inner, depth + 1));
    }
  }
}

// A part of a lane in a colour of the palette; waiting has lines across it. What the filter does not
// find is dim.
function fillPart(context, fill, x, y, wide, high) {
  context.fillStyle = fill === "wait" ? hatched(context, fill) : color(fill === "dim" ? "other" : fill);
  context.fillRect(x, y, wide, high);
}

function drawSlices({ context, width }, lane, from, to, begin, scale) {
  const top = tops[lane], height = heights[lane];
  const shares = new Map();  // of a column of pixels the part that each colour has
  let column = -1;
  const flush = () => { drawShares(context, shares, 1, column, 1, lane); shares.clear(); };
  const add = (x, fill, part) => {
    if (Math.floor(x) !== column) { flush(); column = Math.floor(x); }
    if (part > 0) shares.set(fill, (shares.get(fill) ?? 0) + part);
  };
  // Whole pixels are filled; what two colours have a part of is shared by them.
  const stretch = (fill, left, right, label) => {
    const first = Math.ceil(left), last = Math.floor(right);
    if (first >= last) {
      add(left, fill, Math.min(first, right) - left);
      if (first < right) add(first, fill, right - first);
      return;
    }
    add(left, fill, first - left);
    context.globalAlpha = fill === "dim" ? .2 : 1;
    const wide = last - first;
    fillPart(context, fill, first, top, wide > 4 ? wide - .5 : wide, height);
    if (label) boxLabel(context, label, fill, first, top + height / 2 + 4, wide);
    context.globalAlpha = 1;
    add(last, fill, right - last);
  };
  const first = firstWhere(from, to, i => begin + slices.end[i] * scale >= view.left);
  for (let i = first; i < to && begin + slices.begin[i] * scale < view.right; i++) {
    const x = Math.max(xOf(begin + slices.begin[i] * scale, width), LABELS);
    const right = Math.min(xOf(begin + slices.end[i] * scale, width), width);
    if (right <= x) continue;
    const operation = slices.kind[i] === FLIGHT ? operations[slices.operation[i]] : null;
    const wait = operation ? xOf(begin + (slices.end[i] - operation.exposed) * scale, width) : right;
    const end = Math.min(Math.max(wait, x), right);
    const fill = matches && !matches[i] ? "dim" : fillOf(i);
    const hasLabel = fill !== "dim" && fill !== "wait";
    if (end > x) stretch(fill, x, end, hasLabel ? labelOf(i) : "");
    if (right > end) stretch("wait", end, right, "");
  }
  flush();
}

// Of a stretch of a lane the share of the time that each colour has, one above the other.
function drawShares(context, fills, time, x, wide, lane) {
  let y = tops[lane] + heights[lane], sum = 0;
  for (const part of fills.values()) sum += part;
  for (const fill of ORDER) {
    const high = (fills.get(fill) ?? 0) / Math.max(time, sum) * heights[lane];
    if (!high) continue;
    y -= high;
    context.globalAlpha = fill === "dim" ? .2 : 1;
    fillPart(context, fill, x, y, wide, high);
  }
  context.globalAlpha = 1;
}

const ORDER = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "other", "call", "flight", "dim", "wait"];

const trips = ({ isLoop, trips }) => isLoop ? " × " + count(trips, "trip") : "";
const labelOf = i => text("name", i) + (callOf.has(i) ? trips(callOf.get(i)) : "");

// Trips that are too short to be told apart.
function drawTogether({ context, width }, call, begin, scale) {
  const x = Math.max(xOf(begin + call.begin * scale, width), LABELS);
  const right = Math.min(xOf(begin + call.end * scale, width), width);
  for (const [lane, fills] of right > x ? call.busy : [])
    drawShares(context, matches ? dimmed(fills) : fills, call.end - call.begin, x, Math.max(right - x, .8), lane);
}

// What the filter finds is not told trip by trip: nothing stands out.
const dimmed = fills => new Map([["dim", [...fills.values()].reduce((sum, time) => sum + time, 0)]]);

function drawLanes() {
  const picture = prepare($("lanes")), { context, width } = picture;
  timeAxis(picture, view, xOf, tick, 0);
  lanes.forEach((name, lane) => {
    context.globalAlpha = .35;
    context.fillStyle = color("call");
    context.fillRect(LABELS, tops[lane], width - LABELS, heights[lane]);
    context.globalAlpha = 1;
    context.fillStyle = color("ink");
    context.textAlign = "right";
    context.fillText(tail(name, 13), LABELS - 6, tops[lane] + heights[lane] / 2 + 4);
  });
  drawFrame(picture, frames[0], 0, 1, 0);
  if (!selected) return;
  context.strokeStyle = color("ink");
  context.lineWidth = 3;
  const flight = flightOf.get(slices.operation[selected.i]);
  for (const i of new Set([selected.i, flight ?? selected.i])) {
    const [begin, end] = [slices.begin[i], slices.end[i]].map(t => selected.begin + t * selected.scale);
    const x = Math.max(xOf(begin, width), LABELS), right = xOf(end, width), lane = laneOf(i);
    if (right >= LABELS && x < width) context.strokeRect(x, tops[lane], Math.max(right - x, 2), heights[lane]);
  }
}

// The lane of a slice.
function laneOf(i) {
  for (const frame of frames)
    for (const [lane, from, to] of frame.lanes) if (from <= i && i < to) return lane;
}

// -- memory ------------------------------------------------------------------------------------

// The most bytes in use between two times while a frame runs.
function memoryWithin(frame, begin, scale, left, right, depth = 0) {
  const { calls, memory } = frame, at = t => (t - begin) / scale;
  let most = 0;
  const next = firstWhere(0, memory.time.length, k => memory.time[k] > at(left));
  for (let k = next; k < memory.time.length && memory.time[k] < at(right); k++)
    most = Math.max(most, memory.bytes[k]);
  const first = firstWhere(0, calls.length, k => calls[k].end > at(left));
  // A call that has begun hides what was in use before it.
  if (next > 0 && !(first < calls.length && calls[first].begin <= at(left)))
    most = Math.max(most, memory.bytes[next - 1]);
  for (let k = first; k < calls.length && calls[k].begin < at(right); k++) {
    const call = calls[k];
    if (right - left >= call.period * scale || depth > MOST_DEPTH) {
      for (const [callee] of call.frames) most = Math.max(most, frames[callee].peak);
      continue;
    }
    const [low, high] = tripsWithin(call, begin, scale, left, right);
    for (let trip = low; trip <= high; trip++)
      inTrip(call, begin, scale, trip, (callee, from, inner) => {
        if (from < right && from + callee.duration * inner > left)
          most = Math.max(most, memoryWithin(callee, from, inner, left, right, depth + 1));
      });
  }
  return most;
}

function drawMemory() {
  const picture = prepare($("memory")), { context, width, height } = picture;
  const top = Math.max(data.peak, 1) * 1.05, yOf = size => height - size / top * height;
  sizeAxis(picture, 0, top, yOf);
  for (let x = LABELS; x < width; x++) {
    const most = memoryWithin(frames[0], 0, 1, timeAt(x, width), timeAt(x + 1, width));
    const inArguments = Math.min(most, data.arguments);
    context.fillStyle = color("c1");
    context.fillRect(x, yOf(most), 1, yOf(inArguments) - yOf(most));
    context.fillStyle = color("c7");
    context.fillRect(x, yOf(inArguments), 1, height - yOf(inArguments));
  }
  if (data.limit === null || data.limit > top) return;
  context.fillStyle = color("bad");
  context.fillRect(LABELS, yOf(data.limit), width - LABELS, 2);
}

draw = () => { drawLanes(); drawMemory(); };

// -- what is selected --------------------------------------------------------------------------

const explanation = operation => [operation.madeBy && `made by ${operation.madeBy}`, operation.why,
  operation.under.length ? "under it: " + operation.under.map(([name, t]) => `%${name} ${time(t)}`).join(", ")
    : "nothing runs under it"];
const figures = operation =>
  `${time(operation.latency)}: ${time(operation.hidden)} hidden, ${time(operation.exposed)} exposed`;
const length = ({ i, scale }) => time((slices.end[i] - slices.begin[i]) * scale);

function select(hit) {
  selected = hit;
  const operation = hit ? operations[slices.operation[hit.i]] : null;
  $("selected").textContent = !hit ? "" : operation ? `%${operation.start} … %${operation.done}`
    : `%${labelOf(hit.i)}: ${length(hit)}`;
  $("why").textContent = !hit ? "" : (operation
    ? [figures(operation), ...explanation(operation), operation.opName, operation.source]
    : [`${text("opcode", hit.i)} in %${text("computation", hit.i)}`, text("op_name", hit.i), text("source", hit.i)])
    .concat(hit.trips).filter(Boolean).join("\n");
  redraw();
}

// The first run of an operation.
function show(number) {
  const { at, computation } = operations[number];
  if (!at) return;
  const margin = Math.max((at[2] - at[0]) * .6, makespan * 1e-7);
  setTime(at[0] - margin, at[2] + margin);
  const i = flightOf.get(number);
  select(i === undefined ? null : { i, begin: frameOf.get(computation).first, scale: 1, trips: [] });
  $("lanes").scrollIntoView({ block: "nearest" });
}

function list(wanted) {
  const chosen = [];
  $("rows").closest(".scroll").hidden = !operations.length;
  if (!operations.length) $("operations").textContent = "No operation runs beside the main stream";
  operations.forEach((operation, number) => {
    const { start, opName, kind, source, madeBy = "" } = operation;
    const words = `${start} ${opName} ${kind} ${source} ${madeBy}`.toLowerCase();
    if (chosen.length < ROWS && words.includes(wanted)) chosen.push(number);
  });
  fillRows($("rows"), chosen.map(number => {
    const o = operations[number];
    return [time(o.exposed * o.runs), time(o.exposed), time(o.hidden), time(o.latency),
      o.runs.toLocaleString("en"), bytes(o.bytes), o.group ?? "", o.kind, "%" + o.start,
      "%" + o.computation, ...("madeBy" in o ? [o.madeBy] : []), o.why];
  }), row => {
    show(chosen[row]);
    announce(operations[chosen[row]].start, operations[chosen[row]].computation);
  });
}

// -- moving about ------------------------------------------------------------------------------

function setTime(left, right) {
  const length = Math.min(Math.max(right - left, makespan * 1e-8), makespan);
  view.left = Math.min(Math.max(left, 0), makespan - length);
  view.right = view.left + length;
  redraw();
}

const reset = () => { select(null); setTime(0, makespan); };

// What is in a lane at a time, or at most `slack` away: { i, begin, scale, trips }.
function sliceIn(frame, begin, scale, lane, t, slack, trips, depth = 0) {
  let best = null;
  const { calls } = frame;
  const k = firstWhere(0, calls.length, k => begin + calls[k].end * scale > t);
  if (k < calls.length && begin + calls[k].begin * scale <= t && depth < MOST_DEPTH) {
    const call = calls[k], [trip] = tripsWithin(call, begin, scale, t, t);
    const name = call.isLoop ? [`trip ${(trip + 1).toLocaleString("en")} of ${call.trips.toLocaleString("en")} of %${text("name", call.slice)}`] : [];
    inTrip(call, begin, scale, trip, (callee, at, inner) => {
      if (at <= t && t < at + callee.duration * inner)
        best = sliceIn(callee, at, inner, lane, t, slack, [...trips, ...name], depth + 1) ?? best;
    });
  }
  if (best) return best;
  let far = Infinity;
  for (const [of, from, to] of frame.lanes) {
    if (of !== lane) continue;
    const first = firstWhere(from, to, i => begin + slices.end[i] * scale >= t - slack);
    for (let i = first; i < to && begin + slices.begin[i] * scale <= t + slack; i++) {
      const left = begin + slices.begin[i] * scale, right = begin + slices.end[i] * scale;
      const distance = Math.max(left - t, t - right, 0);
      if (distance < far || (distance === far && slices.kind[i] === WAITING))
        [far, best] = [distance, { i, begin, scale, trips }];
    }
  }
  return best;
}

function sliceAt(event) {
  const width = $("lanes").clientWidth, t = timeAt(event.offsetX, width);
  const lane = tops.findIndex((top, k) => event.offsetY >= top && event.offsetY < top + heights[k] + 4);
  return lane < 0 ? null
    : sliceIn(frames[0], 0, 1, lane, t, 2 * (view.right - view.left) / width, []);
}

function laneLines(event) {
  const hit = sliceAt(event);
  if (!hit) return null;
  const { i } = hit, operation = operations[slices.operation[i]];
  const place = `${text("opcode", i)} in %${text("computation", i)}`;
  if (!operation)
    return [`%${labelOf(i)}: ${length(hit)}`, place, text("op_name", i), text("source", i),
      `from ${time(hit.begin + slices.begin[i] * hit.scale)}`, ...hit.trips];
  return [slices.kind[i] === WAITING ? `waits ${time(operation.exposed)} for %${operation.start}` : `%${operation.start}`,
    place, `${bytes(operation.bytes)}${operation.group ? ` on ${count(operation.group, "device")}` : ""}`
      + `, ${count(operation.runs, "run")}`,
    figures(operation), ...explanation(operation), operation.opName, operation.source, ...hit.trips];
}

function memoryLines(event) {
  const t = timeAt(event.offsetX, $("memory").clientWidth);
  if (t < 0 || t >= makespan) return null;
  const size = memoryWithin(frames[0], 0, 1, t, t + makespan * 1e-9);
  return [`${bytes(size)} in use at ${time(t)}`, `${bytes(Math.min(size, data.arguments))} arguments`,
    `${bytes(Math.max(size - data.arguments, 0))} temporaries and results`];
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

handle($("lanes"), laneLines, event => {
  const hit = sliceAt(event);
  select(hit);
  if (hit) announce(text("name", hit.i), text("computation", hit.i));
});
handle($("memory"), memoryLines, () => {});
$("filter").addEventListener("input", applyFilter);
$("by").addEventListener("change", () => group($("by").value));
data.groupings.forEach(({ name }, k) => $("by").append(new Option(name, k)));
frames.forEach(({ name, runs }, k) =>
  $("computation").append(new Option(`%${name}` + (runs === 1 ? "" : `, first of ${runs.toLocaleString("en")} runs`), k)));
$("computation").addEventListener("change", () => {
  const { first, duration } = frames[$("computation").value];
  setTime(first, first + duration);
});
$("worst").onclick = () => operations.length && show(0);
$("all").onclick = reset;
legend($("memoryLegend"), [
  { fill: "c7", label: "arguments", figure: bytes(data.arguments) },
  { fill: "c1", label: "temporaries and results",
    figure: `up to ${bytes(Math.max(data.peak - data.arguments, 0))}` },
  ...data.limit === null ? [] : [{ fill: "bad", label: "limit", figure: bytes(data.limit)
    + (data.limit > Math.max(data.peak, 1) * 1.05 ? ", above the picture" : "") }],
]);
list("");
group(0);

// The first slice of an instruction, as the page around this one chooses it: the time that is shown
// stays where it is in it.
onSelect((name, computation) => {
  const frame = frameOf.get(computation);
  for (const [, from, to] of frame?.lanes ?? [])
    for (let i = from; i < to; i++)
      if (text("name", i) === name) {
        const hit = { i, begin: frame.first, scale: 1, trips: [] };
        const [begin, end] = [slices.begin[i] + hit.begin, slices.end[i] + hit.begin];
        const half = Math.max((end - begin) * 4, makespan * 1e-4);
        if (end < view.left || begin > view.right) setTime(begin - half, end + half);
        return select(hit);
      }
  select(null);
});
