const $ = id => document.getElementById(id);
const LABELS = 78;  // pixels left of the pictures

function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1023.95 && unit < units.length - 1) { size /= 1024; unit++; }
  return (unit ? size.toFixed(1) : size) + " " + units[unit];
}

// A canvas made ready to be drawn on anew.
function prepare(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height, ink: getComputedStyle(document.body).color };
}

// Lines at sizes between `low` and `high`, each with its label.
function axis({ context, width, height, ink }, low, high, yOf) {
  context.fillStyle = context.strokeStyle = ink;
  context.textAlign = "right";
  const step = 2 ** Math.ceil(Math.log2(Math.max((high - low) / 6, 1)));
  for (let size = Math.ceil(low / step) * step; size <= high; size += step) {
    const y = yOf(size);
    context.globalAlpha = .8;
    context.fillText(bytes(size), LABELS - 6, Math.min(Math.max(y + 4, 9), height - 2));
    context.globalAlpha = .15;
    context.fillRect(LABELS, y, width - LABELS, 1);
  }
  context.globalAlpha = 1;
}

const colors = new Map();

// A color of its own for a text, the same every time.
function colorOfText(text) {
  if (!colors.has(text)) {
    let hash = 0;
    for (const letter of text) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
    colors.set(text, `hsl(${hash % 360} ${55 + hash % 30}% ${45 + (hash >> 8) % 15}%)`);
  }
  return colors.get(text);
}

// A row of a table.
function tableRow(cells, onclick) {
  const row = document.createElement("tr");
  row.append(...cells.map(value => {
    const cell = document.createElement("td");
    cell.textContent = value;
    return cell;
  }));
  row.onclick = onclick;
  return row;
}

// Let people zoom with the wheel, drag, and click right of the labels; `actions` say what happens:
// zoom(event, factor), view() and move(dx, dy, view), choose(event), reset(), lines(event).
function navigate(canvas, actions) {
  let drag = null;
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
  canvas.addEventListener("pointerleave", event => showTip(event, null));
  canvas.addEventListener("dblclick", actions.reset);
}
