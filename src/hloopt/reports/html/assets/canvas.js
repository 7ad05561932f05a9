const LABELS = 88;  // pixels left of the pictures
const AXIS = 20;  // pixels of an axis of time

function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1023.95 && unit < units.length - 1) { size /= 1024; unit++; }
  return (unit ? size.toFixed(1) : size) + " " + units[unit];
}

// A time of the model: as people read seconds, or cycles, where one of them stands for no time.
function duration(cycles, secondsPerCycle) {
  if (secondsPerCycle === null)
    return cycles.toLocaleString("en", { maximumFractionDigits: cycles < 100 ? 1 : 0 }) + " cycles";
  const seconds = cycles * secondsPerCycle;
  if (seconds <= 0) return "0";
  for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]])
    if (Math.abs(seconds) >= .9995 * scale) return (seconds / scale).toFixed(scale < 1 ? 1 : 2) + " " + unit;
  return seconds < 1e-9 ? "< 1 ns" : (seconds * 1e9).toFixed(0) + " ns";
}

const share = (part, whole) => whole ? (100 * part / whole).toFixed(1) + "%" : "0%";
const tail = (text, most) => text.length > most ? "…" + text.slice(1 - most) : text;
const middle = (text, most) => text.length > most
  ? text.slice(0, Math.ceil((most - 1) / 2)) + "…" + text.slice(-Math.floor((most - 1) / 2)) : text;
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

// -- columns -----------------------------------------------------------------------------------

// A column as the page holds it, made ready: of each text how much of the one before it begins with,
// and the rest; by thing the number of its text, but where there is one text only.
function column({ texts: packed, at }) {
  const texts = [];
  for (let k = 0; k < packed.length; k += 2)
    texts.push((texts.at(-1) ?? "").slice(0, packed[k]) + packed[k + 1]);
  return { texts, numberAt: i => at.length ? at[i] : 0, textAt: i => texts[at.length ? at[i] : 0] ?? "" };
}

// The rows of a table as objects.
function rowsOf(table) {
  const entries = Object.entries(table).map(([key, values]) =>
    [key, values.texts ? column(values).textAt : i => values[i]]);
  const length = Math.max(0, ...Object.values(table).map(values => values.length ?? 0));
  return Array.from({ length }, (_, i) => Object.fromEntries(entries.map(([key, at]) => [key, at(i)])));
}

// The columns of texts among those of a table.
const textColumns = table => Object.fromEntries(Object.entries(table)
  .filter(([, value]) => value.texts).map(([name, value]) => [name, column(value)]));

// By thing whether one of some columns contains what is wanted.
function search(columns, names, wanted, count) {
  const found = names.filter(name => columns[name]).map(name => ({
    column: columns[name],
    hits: columns[name].texts.map(text => text.toLowerCase().includes(wanted)),
  }));
  return Uint8Array.from({ length: count }, (_, i) =>
    found.some(({ column, hits }) => hits[column.numberAt(i)]));
}

// -- colours -----------------------------------------------------------------------------------

const colors = new Map();
const dark = matchMedia("(prefers-color-scheme: dark)");
const forgetColors = () => colors.clear();

// A colour of the palette by its name, as it is in this light.
function color(name) {
  if (!colors.has(name))
    colors.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return colors.get(name);
}

// The colour with lines across it: what is not told apart by its colour alone.
const hatchings = new Map();
function hatched(context, name) {
  const key = color(name) + color("page");
  if (!hatchings.has(key)) {
    const tile = document.createElement("canvas"), side = 10;
    tile.width = tile.height = side;
    const paint = tile.getContext("2d");
    paint.fillStyle = color(name);
    paint.fillRect(0, 0, side, side);
    paint.strokeStyle = color("page");
    paint.globalAlpha = .6;
    for (const at of [-side / 2, side / 2, side * 3 / 2]) {
      paint.moveTo(at, side);
      paint.lineTo(at + side, 0);
    }
    paint.stroke();
    hatchings.set(key, context.createPattern(tile, "repeat"));
  }
  return hatchings.get(key);
}

// A legend: entries { fill, label, figure, hatched }, after words that say what the figures are of.
function legend(list, entries, words) {
  const first = document.createElement("li");
  first.textContent = words ?? "";
  first.className = "words";
  list.replaceChildren(...(words ? [first] : []), ...entries.map(entry => {
    const item = document.createElement("li"), box = document.createElement("i");
    box.style.backgroundColor = `var(--${entry.fill})`;
    if (entry.hatched) box.className = "hatched";
    item.append(box, tail(entry.label, 48));
    item.title = entry.label;
    if (entry.figure) {
      const figure = document.createElement("span");
      figure.textContent = entry.figure;
      item.append(figure);
    }
    return item;
  }));
}

// -- drawing -----------------------------------------------------------------------------------

// A canvas made ready to be drawn on anew.
function prepare(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height };
}

// Lines at sizes between `low` and `high`, each with its label.
function sizeAxis({ context, width, height }, low, high, yOf) {
  context.textAlign = "right";
  const step = 2 ** Math.ceil(Math.log2(Math.max((high - low) / 6, 1)));
  for (let size = Math.ceil(low / step) * step; size <= high; size += step) {
    const y = yOf(size);
    context.fillStyle = color("line");
    context.fillRect(LABELS, Math.round(y), width - LABELS, 1);
    context.fillStyle = color("dim");
    context.fillText(bytes(size), LABELS - 6, Math.min(Math.max(y + 4, 9), height - 2));
  }
}

// Marks of a time axis along the top, with lines through the picture.
function timeAxis({ context, width, height }, view, xOf, label, least) {
  const raw = Math.max((view.right - view.left) / Math.max((width - LABELS) / 110, 1), least);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(k => k * power >= raw * .999);
  context.textAlign = "center";
  for (let t = Math.ceil(view.left / step) * step; t <= view.right; t += step) {
    const x = xOf(t, width);
    context.fillStyle = color("line");
    context.fillRect(Math.round(x), AXIS - 5, 1, height);
    context.fillStyle = color("dim");
    const text = label(t, step), half = context.measureText(text).width / 2;
    if (x - half >= LABELS - 20 && x + half <= width) context.fillText(text, x, 12);
  }
}

// Text in a box that is filled with a colour of the palette, where there is room for it.
function boxLabel(context, text, fill, x, y, width) {
  const room = Math.floor((width - 6) / 6.2);
  if (room < 4) return;
  context.fillStyle = color("on-" + fill);
  context.textAlign = "left";
  context.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, x + 3, y);
}

let draw = () => {};  // what the page draws
let isWaiting = false;
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; draw(); });
}

addEventListener("resize", redraw);
dark.addEventListener("change", () => { forgetColors(); redraw(); });
for (const [name, isPrint] of [["beforeprint", true], ["afterprint", false]])
  addEventListener(name, () => {
    document.documentElement.classList.toggle("print", isPrint);
    forgetColors();
    draw();
  });

// -- tables ------------------------------------------------------------------------------------

// A text that may be broken into lines behind each slash.
const pathParts = text => text.split(/(?<=\/)/)
  .flatMap((part, k) => k ? [document.createElement("wbr"), part] : [part]);

// What a cell shows, by the class of its head: see `Column` of page.py.
const cuts = { path: text => tail(text, 36), text: text => middle(text, 180) };

// Rows of a table, whose cells are like the heads above them; `choose` gets the number of a row.
function fillRows(body, rows, choose) {
  const styles = [...body.parentElement.tHead.rows[0].cells].map(cell => cell.className);
  body.replaceChildren(...rows.map((cells, number) => {
    const row = document.createElement("tr");
    row.append(...cells.map((value, column) => {
      const cell = document.createElement("td");
      const style = cell.className = styles[column];
      const shown = cuts[style]?.(value) ?? value;
      if (style === "text") cell.append(...pathParts(shown)); else cell.textContent = shown;
      if (style === "name" || shown !== value) cell.title = value;
      return cell;
    }));
    row.className = "choice";
    row.tabIndex = 0;
    row.onclick = () => choose(number);
    row.onkeydown = event => { if (event.key === "Enter") choose(number); };
    return row;
  }));
}

// -- moving about ------------------------------------------------------------------------------

// Let people zoom with the wheel, drag, and click right of the labels; `actions` say what happens:
// zoom(event, factor), view() and move(dx, dy, view), choose(event), reset(), lines(event).
// By keyboard: arrows move a pointer, with Shift the picture; + and - zoom, Enter is a click.
function navigate(canvas, actions) {
  let drag = null, pointer = null;
  canvas.tabIndex = 0;
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    actions.zoom(event, Math.exp((event.deltaY || event.deltaX) * .0015));
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, moved: false, from: actions.view() };
  });
  canvas.addEventListener("pointermove", event => {
    if (drag) {
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      drag.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
      if (!drag.moved) return;
      showTip(event, null);
      actions.move(dx, dy, drag.from);
      return;
    }
    showTip(event, event.offsetX < LABELS ? null : actions.lines(event));
  });
  canvas.addEventListener("pointerup", event => {
    if (drag && !drag.moved && event.offsetX >= LABELS) actions.choose(event);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  for (const name of ["pointerleave", "blur"])
    canvas.addEventListener(name, event => showTip(event, null));
  canvas.addEventListener("dblclick", actions.reset);
  canvas.addEventListener("keydown", event => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    pointer ??= { x: LABELS + (width - LABELS) / 2, y: height / 2 };
    const at = { offsetX: pointer.x, offsetY: pointer.y, clientX: left + pointer.x, clientY: top + pointer.y };
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (arrow && event.shiftKey) actions.move(-60 * arrow[0], -60 * arrow[1], actions.view());
    else if (arrow) {
      pointer.x = Math.min(Math.max(pointer.x + 8 * arrow[0], LABELS), width - 1);
      pointer.y = Math.min(Math.max(pointer.y + 8 * arrow[1], 0), height - 1);
      Object.assign(at, { offsetX: pointer.x, offsetY: pointer.y, clientX: left + pointer.x, clientY: top + pointer.y });
      showTip(at, actions.lines(at));
    }
    else if (event.key === "+" || event.key === "=") actions.zoom(at, .7);
    else if (event.key === "-") actions.zoom(at, 1 / .7);
    else if (event.key === "Enter") actions.choose(at);
    else if (event.key === "Home") actions.reset();
    else return;
    event.preventDefault();
  });
}
