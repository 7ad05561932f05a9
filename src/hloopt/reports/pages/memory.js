const { buffers, texts, allocations } = data;
const count = buffers.size.length, positions = Math.max(data.positions, 1);
const text = (column, i) => texts[buffers[column][i]];
const THROUGHOUT = new Set(["parameter", "output", "constant"]);
const KINDS = { parameter: "#0891b2", output: "#16a34a", constant: "#a855f7", temporary: "#d97706" };
const ROWS = 100;

// -- data --------------------------------------------------------------------------------------

const timeline = new Float64Array(positions);
for (let k = 0; k < data.timeline.length; k++) {
  const end = k + 1 < data.timeline.length ? data.timeline[k + 1][0] : positions;
  timeline.fill(data.timeline[k][1], data.timeline[k][0], end);
}

// Of an allocation that is set aside throughout, its largest buffer stands for it.
const standsFor = new Map();
for (let i = 0; i < count; i++) {
  const allocation = buffers.allocation[i], best = standsFor.get(allocation);
  if (!THROUGHOUT.has(text("kind", i))) continue;
  if (best === undefined || buffers.size[i] > buffers.size[best]) standsFor.set(allocation, i);
}
const isThroughout = i => standsFor.get(buffers.allocation[i]) === i;
const isTemporary = i => !THROUGHOUT.has(text("kind", i));
const isAlive = (i, at) =>
  isTemporary(i) ? buffers.start[i] <= at && at <= buffers.end[i] : isThroughout(i);

// Spaces of addresses to look at: each allocation of temporaries, and all one above the other.
const spaces = [];
allocations.forEach((allocation, number) => {
  if (allocation.kind === "temporary" && allocation.size)
    spaces.push({ label: "temporaries" + (allocation.color ? `, S(${allocation.color})` : ""),
      size: allocation.size, base: new Map([[number, 0]]) });
});
spaces.sort((a, b) => b.size - a.size);
const everything = { label: "all allocations", size: 0, base: new Map() };
allocations.map((allocation, number) => ({ allocation, number }))
  .filter(({ allocation }) => allocation.size && allocation.kind !== "thread-local")
  .sort((a, b) => (a.allocation.kind === "temporary") - (b.allocation.kind === "temporary")
    || b.allocation.size - a.allocation.size)
  .forEach(({ allocation, number }) => {
    everything.base.set(number, everything.size);
    everything.size += allocation.size;
  });
spaces.push(everything);
spaces.forEach((space, k) => $("space").append(new Option(`${space.label}: ${bytes(space.size)}`, k)));

// -- state -------------------------------------------------------------------------------------

const view = { left: 0, right: positions, bottom: 0, top: 1 };
let space = spaces[0], at = data.peakPosition, matches = null, share = null, selected = -1, shown = [];

function chooseSpace(number) {
  space = spaces[number];
  shown = [];
  for (let i = 0; i < count; i++) if (space.base.has(buffers.allocation[i])) shown.push(i);
  shown.sort((a, b) => buffers.size[b] - buffers.size[a]);
  view.bottom = 0;
  view.top = Math.max(space.size, 1);
  redraw();
}

function applyFilter() {
  const wanted = $("filter").value.trim().toLowerCase();
  matches = share = null;
  if (wanted) {
    const hits = texts.map(value => value.toLowerCase().includes(wanted));
    const columns = ["name", "op_name", "source", "shape", "opcode"];
    matches = new Uint8Array(count);
    const change = new Float64Array(positions + 1);
    for (let i = 0; i < count; i++) {
      matches[i] = columns.some(column => hits[buffers[column][i]]);
      if (!matches[i] || !(isTemporary(i) || isThroughout(i))) continue;
      change[isTemporary(i) ? buffers.start[i] : 0] += buffers.size[i];
      change[isTemporary(i) ? Math.min(buffers.end[i] + 1, positions) : positions] -= buffers.size[i];
    }
    share = new Float64Array(positions);
    let sum = 0;
    for (let p = 0; p < positions; p++) share[p] = sum += change[p];
  }
  list();
  redraw();
}

function colorOf(i) {
  const by = $("color").value;
  if (by === "kind") return KINDS[text("kind", i)] || "#888";
  const label = by === "scope" ? text("op_name", i).split("/").slice(0, 3).join("/") : text(by, i);
  if (!label) return "#888";
  return colorOfText(label);
}

// -- drawing -----------------------------------------------------------------------------------

const xOf = (p, width) => LABELS + (p - view.left) / (view.right - view.left) * (width - LABELS);
const positionAt = (x, width) =>
  view.left + (x - LABELS) / (width - LABELS) * (view.right - view.left);

// Marks of the peak and of the chosen position, over the whole height.
function marks({ context, width, height, ink }) {
  for (const [position, color] of [[at, ink], [data.peakPosition, "#dc2626"]]) {
    if (position < view.left || position >= view.right) continue;
    context.fillStyle = color;
    context.fillRect(xOf(position + .5, width), 0, 1, height);
  }
}

function drawTime() {
  const picture = prepare($("time")), { context, width, height } = picture;
  const top = Math.max(data.peak, 1) * 1.05;
  const yOf = size => height - size / top * height;
  axis(picture, 0, top, yOf);
  const series = [[timeline, KINDS.temporary, .75], [null, KINDS.parameter, .75]];
  if (share) series.push([share, "#dc2626", .8]);
  for (const [values, color, alpha] of series) {
    context.fillStyle = color;
    context.globalAlpha = alpha;
    for (let x = LABELS; x < width; x++) {
      const first = Math.floor(positionAt(x, width));
      const last = Math.max(first + 1, Math.ceil(positionAt(x + 1, width)));
      let most = values ? 0 : data.throughout;
      if (values)
        for (let p = Math.max(first, 0); p < Math.min(last, positions); p++)
          if (values[p] > most) most = values[p];
      const y = yOf(most);
      context.fillRect(x, y, 1, height - y);
    }
  }
  context.globalAlpha = 1;
  context.fillStyle = "#dc2626";
  context.textAlign = "left";
  if (data.limit !== null && data.limit <= top) {
    context.fillRect(LABELS, yOf(data.limit), width - LABELS, 2);
    context.fillText("limit " + bytes(data.limit), LABELS + 4, yOf(data.limit) + 13);
  }
  marks(picture);
  if (data.peakPosition < view.left || data.peakPosition >= view.right) return;
  context.fillStyle = "#dc2626";
  context.fillText("peak " + bytes(data.peak),
    Math.min(xOf(data.peakPosition + .5, width) + 4, width - 90), 10);
}

const boxes = [];  // what is drawn, the smallest last: for the pointer

function drawPacking() {
  const picture = prepare($("packing")), { context, width, height } = picture;
  const yOf = size => height - (size - view.bottom) / (view.top - view.bottom) * height;
  axis(picture, view.bottom, view.top, yOf);
  context.save();
  context.beginPath();
  context.rect(LABELS, 0, width - LABELS, height);
  context.clip();
  boxes.length = 0;
  for (const wanted of matches ? [0, 1] : [1]) {  // what the filter finds lies above the rest
    const taken = new Uint8Array(Math.ceil(width) * Math.ceil(height));  // pixels with a tiny box
    for (const i of shown)
      if (!matches || matches[i] === wanted) drawBox(i, context, width, height, yOf, taken, !wanted);
  }
  if (selected >= 0 && space.base.has(buffers.allocation[selected])) {
    const base = space.base.get(buffers.allocation[selected]) + buffers.offset[selected];
    const x = xOf(buffers.start[selected], width), y = yOf(base + buffers.size[selected]);
    context.globalAlpha = 1;
    context.strokeStyle = picture.ink;
    context.lineWidth = 2;
    context.strokeRect(x, y, xOf(buffers.end[selected] + 1, width) - x, yOf(base) - y);
  }
  context.restore();
  marks(picture);
}

// What is smaller than two pixels is drawn once per pixel: it would not show more often.
function drawBox(i, context, width, height, yOf, taken, isDim) {
  const base = space.base.get(buffers.allocation[i]) + buffers.offset[i];
  if (buffers.end[i] < view.left || buffers.start[i] >= view.right) return;
  if (base >= view.top || base + buffers.size[i] <= view.bottom) return;
  const x = xOf(buffers.start[i], width), y = yOf(base + buffers.size[i]);
  const wide = Math.max(xOf(buffers.end[i] + 1, width) - x, .7);
  const high = Math.max(yOf(base) - y, .7);
  if (wide < 2 && high < 2) {
    const pixel = Math.max(y | 0, 0) * Math.ceil(width) + Math.max(x | 0, 0);
    if (taken[pixel]) return;
    taken[pixel] = 1;
  }
  context.globalAlpha = isDim ? .12 : .85;
  context.fillStyle = colorOf(i);
  context.fillRect(x, y, wide > 4 ? wide - .5 : wide, high > 4 ? high - .5 : high);
  boxes.push(i);
  if (wide < 60 || high < 13 || isDim) return;
  const left = Math.max(x, LABELS), room = Math.floor((x + wide - left - 6) / 6);
  if (room < 4) return;
  context.globalAlpha = 1;
  context.fillStyle = "#fff";
  context.textAlign = "left";
  context.fillText(text("name", i).slice(0, room), left + 3, Math.min(y + 11, height - 3));
}

let isWaiting = false;
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawTime(); drawPacking(); });
}

// -- what is alive -----------------------------------------------------------------------------

function list() {
  const alive = [];
  let sum = 0;
  for (let i = 0; i < count; i++)
    if (isAlive(i, at) && (!matches || matches[i])) { alive.push(i); sum += buffers.size[i]; }
  alive.sort((a, b) => buffers.size[b] - buffers.size[a]);
  const name = texts[data.instructions[at]] || "";
  $("alive").textContent = `${alive.length.toLocaleString("en")} buffers`
    + `${matches ? " of the filter" : ""}, ${bytes(sum)}, are alive at position ${at}`
    + ` of ${data.positions}${name ? `: %${name}` : ""}${at === data.peakPosition ? " (the peak)" : ""}`
    + (alive.length > ROWS ? `; the ${ROWS} largest` : "");
  $("rows").replaceChildren(...alive.slice(0, ROWS).map(i => {
    const cells = [bytes(buffers.size[i]), (100 * buffers.size[i] / Math.max(data.peak, 1)).toFixed(1) + " %",
      text("kind", i), text("shape", i), buffers.start[i], buffers.end[i], "%" + text("name", i),
      text("op_name", i), text("source", i)];
    return tableRow(cells, () => show(i));
  }));
}

// Zoom to a buffer's lifetime.
function show(i) {
  selected = i;
  if (!space.base.has(buffers.allocation[i])) {
    $("space").value = spaces.length - 1;
    chooseSpace(spaces.length - 1);
  }
  const margin = Math.max((buffers.end[i] - buffers.start[i]) * .2, 5);
  setTime(buffers.start[i] - margin, buffers.end[i] + 1 + margin);
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
  const length = Math.min(Math.max(top - bottom, 64), space.size);
  view.bottom = Math.min(Math.max(bottom, 0), space.size - length);
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
  choose: event => choose(Math.floor(positionAt(event.offsetX, canvas.clientWidth))),
});

function timeLines(event) {
  const position = Math.floor(positionAt(event.offsetX, $("time").clientWidth));
  if (position < 0 || position >= positions) return null;
  return [`position ${position}: %${texts[data.instructions[position]] || ""}`, bytes(timeline[position]),
    `${bytes(data.throughout)} set aside throughout, `
    + `${bytes(timeline[position] - data.throughout)} temporaries`,
    share && `${bytes(share[position])} of the filter`];
}

function packingLines(event) {
  const canvas = $("packing"), position = positionAt(event.offsetX, canvas.clientWidth);
  const address = view.top - event.offsetY / canvas.clientHeight * (view.top - view.bottom);
  const slack = 2 * (view.right - view.left) / canvas.clientWidth;
  for (let k = boxes.length - 1; k >= 0; k--) {
    const i = boxes[k], base = space.base.get(buffers.allocation[i]) + buffers.offset[i];
    if (address < base || address >= base + buffers.size[i]) continue;
    if (position < buffers.start[i] - slack || position > buffers.end[i] + 1 + slack) continue;
    return [`%${text("name", i)} (${text("opcode", i)}) in %${text("computation", i)}`,
      text("shape", i), `${bytes(buffers.size[i])}, ${text("kind", i)}`, text("op_name", i),
      text("source", i), `positions ${buffers.start[i]} to ${buffers.end[i]}`,
      `allocation ${buffers.allocation[i]} + ${buffers.offset[i].toLocaleString("en")}`];
  }
  return null;
}

handle($("time"), timeLines);
handle($("packing"), packingLines);
$("filter").addEventListener("input", applyFilter);
$("color").addEventListener("change", redraw);
$("space").addEventListener("change", () => chooseSpace($("space").value));
$("peak").onclick = () => {
  const half = Math.max((view.right - view.left) / 8, 10);
  setTime(data.peakPosition - half, data.peakPosition + half);
  choose(data.peakPosition);
};
$("all").onclick = reset;
addEventListener("resize", redraw);
for (const [kind, color] of Object.entries(KINDS)) {
  const box = document.createElement("i");
  box.style.background = color;
  $("legend").append(box, kind);
}
if (count && buffers.op_name.every(name => !texts[name])) $("color").value = "shape";
chooseSpace(0);
list();
