"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");

// Show lines of text beside the pointer, or nothing without lines.
function showTip(event, lines) {
  tip.style.display = lines ? "block" : "none";
  if (!lines) return;
  tip.textContent = lines.filter(Boolean).join("\n");
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}
