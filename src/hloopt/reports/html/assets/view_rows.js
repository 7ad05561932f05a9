// A list of many rows of one height, of which those in sight are in the page.
// `rowAt(n)` makes a row, `keyAt(n)` tells it from others when the list changes, `choose(n, event)` is
// for a click or Enter. Keys stop at rows of which `canChoose(n)` holds.
function rowList(box, { height, rowAt, keyAt, choose, canChoose = () => true }) {
  const inner = document.createElement("div"), shown = document.createElement("div");
  inner.className = "rows";
  shown.className = "shown";
  inner.append(shown);
  box.append(inner);
  box.tabIndex = 0;
  let length = 0, current = -1, currentKey = null, chosenKey = null, isWaiting = false;
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
      row.setAttribute("aria-posinset", n + 1);
      row.setAttribute("aria-setsize", length);
      row.dataset.n = n;
      row.id = `${box.id}-${n}`;
      rows.push(row);
    }
    shown.style.transform = `translateY(${from * height}px)`;
    shown.replaceChildren(...rows);
    if (current >= from && current < to) box.setAttribute("aria-activedescendant", `${box.id}-${current}`);
    else box.removeAttribute("aria-activedescendant");
  }
  const refresh = () => {
    if (!isWaiting) { isWaiting = true; requestAnimationFrame(draw); }
  };
  const reveal = n => {
    const top = n * height;
    if (top < box.scrollTop || top + 2 * height > box.scrollTop + box.clientHeight)
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
  };
  const stand = n => { current = n; currentKey = n < 0 ? null : keyAt(n); };

  // The row that many rows away, or the next one beyond it that can be chosen; else the last before it.
  function away(step) {
    const way = Math.sign(step);
    let n = Math.min(Math.max(current + step, 0), length - 1);
    while (n >= 0 && n < length && !canChoose(n)) n += way;
    if (n < 0 || n >= length) {
      n = Math.min(Math.max(current + step, 0), length - 1);
      while (n >= 0 && n < length && !canChoose(n)) n -= way;
    }
    return n >= 0 && n < length ? n : current;
  }

  function move(step) {
    stand(away(step));
    if (current >= 0) reveal(current);
    refresh();
  }

  // The number of the row with a key; -1: none has it.
  function place(key) {
    if (key === null) return -1;
    if (current >= 0 && current < length && keyAt(current) === key) return current;
    for (let n = 0; n < length; n++) if (keyAt(n) === key) return n;
    return -1;
  }
  box.addEventListener("scroll", refresh, { passive: true });
  new ResizeObserver(refresh).observe(box);
  box.addEventListener("click", event => {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("button") || !canChoose(+row.dataset.n)) return;
    stand(+row.dataset.n);
    refresh();
    choose(current, event);
  });
  box.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -length, End: length }[event.key];
    if (step && length) move(step);
    else if (["Enter", " ", "ArrowRight", "ArrowLeft"].includes(event.key) && event.target === box && current >= 0)
      choose(current, event);
    else return;
    event.preventDefault();
  });
  return {
    refresh,
    // Stand in the list, at its first row where no row is the current one.
    enter() {
      box.focus();
      if (current < 0 && length) move(1);
    },
    // A list of so many rows. The row that is selected becomes the current one where it was not
    // selected before, and is in sight then; else the current row stays where it is.
    show(count, selected) {
      length = count;
      inner.style.height = count * height + "px";
      const key = selected < 0 ? null : keyAt(selected), isNew = key !== null && key !== chosenKey;
      chosenKey = key;
      stand(isNew ? selected : place(currentKey));
      if (isNew) reveal(selected);
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
