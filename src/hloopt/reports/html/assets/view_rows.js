// A list of many rows of one height, of which those in sight are in the page.
// `rowAt(n)` makes a row, `choose(n, event)` is for a click or Enter.
function rowList(box, { height, rowAt, choose }) {
  const inner = document.createElement("div"), shown = document.createElement("div");
  inner.className = "rows";
  shown.className = "shown";
  inner.append(shown);
  box.append(inner);
  box.tabIndex = 0;
  let length = 0, current = -1, isWaiting = false;
  const BEYOND = 8;  // rows above and below those in sight

  function draw() {
    isWaiting = false;
    const from = Math.max(0, Math.floor(box.scrollTop / height) - BEYOND);
    const to = Math.min(length, Math.ceil((box.scrollTop + box.clientHeight) / height) + BEYOND);
    const rows = [];
    for (let n = from; n < to; n++) {
      const row = rowAt(n);
      row.classList.add("row");
      row.classList.toggle("current", n === current);
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", n === current);
      row.dataset.n = n;
      rows.push(row);
    }
    shown.style.transform = `translateY(${from * height}px)`;
    shown.replaceChildren(...rows);
  }
  const refresh = () => {
    if (!isWaiting) { isWaiting = true; requestAnimationFrame(draw); }
  };
  const reveal = n => {
    const top = n * height;
    if (top < box.scrollTop || top + 2 * height > box.scrollTop + box.clientHeight)
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
  };
  box.addEventListener("scroll", refresh, { passive: true });
  new ResizeObserver(refresh).observe(box);
  box.addEventListener("click", event => {
    const row = event.target.closest(".row");
    if (row) choose(+row.dataset.n, event);
  });
  box.addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step && length) {
      current = Math.min(Math.max(current + step, 0), length - 1);
      reveal(current);
      refresh();
    }
    else if (["Enter", " ", "ArrowRight", "ArrowLeft"].includes(event.key) && current >= 0) choose(current, event);
    else return;
    event.preventDefault();
  });
  return {
    refresh, reveal,
    // A list of so many rows, the current one in sight; -1: none is.
    show(count, row, isSeen = true) {
      length = count;
      current = row;
      inner.style.height = count * height + "px";
      if (row >= 0 && isSeen) reveal(row);
      refresh();
    },
  };
}

// An element with a class and contents.
function make(tag, style, ...contents) {
  const element = document.createElement(tag);
  if (style) element.className = style;
  element.append(...contents);
  return element;
}

// A button that looks like a link.
function link(text, act) {
  const button = make("button", "link", text);
  button.type = "button";
  button.onclick = act;
  return button;
}
