"use strict";
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const tip = $("tip");

// Show lines of text beside a place in the window, inside of it; nothing without lines.
function showTip({ clientX, clientY }, lines) {
  tip.style.display = lines ? "block" : "none";
  if (!lines) return;
  tip.textContent = lines.filter(Boolean).join("\n");
  const place = (at, size, room) =>
    Math.max(8, at + 14 + size + 8 <= room ? at + 14 : Math.min(at - 14 - size, room - size - 8)) + "px";
  tip.style.left = place(clientX, tip.offsetWidth, innerWidth);
  tip.style.top = place(clientY, tip.offsetHeight, innerHeight);
}

addEventListener("keydown", event => { if (event.key === "Escape") showTip(event, null); });

// -- parts of a page ---------------------------------------------------------------------------

// Tell the page that this one is a part of which instruction was chosen.
function announce(name, computation) {
  if (parent !== window) parent.postMessage({ selected: { name, computation } }, "*");
}

// Let that page choose one, `select(name, computation)`, and answer keys that this one has no use for.
function onSelect(select) {
  addEventListener("message", event => {
    const wanted = event.source === parent && event.data?.select;
    if (wanted) select(wanted.name, wanted.computation);
  });
  if (parent === window) return;
  document.documentElement.classList.add("part");
  addEventListener("keydown", event => {
    if (event.key.length > 1 || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select")) return;
    if (event.key === "/") event.preventDefault();
    parent.postMessage({ key: event.key }, "*");
  });
}
