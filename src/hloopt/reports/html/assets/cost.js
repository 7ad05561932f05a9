const linesOf = element => data[element.dataset?.i];

for (const picture of document.querySelectorAll("svg")) {
  picture.addEventListener("mousemove", event => showTip(event, linesOf(event.target)));
  picture.addEventListener("mouseleave", event => showTip(event, null));
  picture.addEventListener("focusin", event => {
    const { left, top, width, height } = event.target.getBoundingClientRect();
    showTip({ clientX: left + width / 2, clientY: top + height / 3 }, linesOf(event.target));
  });
  picture.addEventListener("focusout", event => showTip(event, null));
}

// -- links to the page around this one ---------------------------------------------------------

const NAME = /^%(\S+)/;
const nameOf = row => NAME.exec(row.querySelector("td.name")?.title ?? "")?.[1];
for (const row of parent === window ? [] : $("rows").rows) {
  const name = nameOf(row);
  if (!name) continue;
  row.className = "choice";
  row.tabIndex = 0;
  row.onclick = () => announce(name);
  row.onkeydown = event => { if (event.key === "Enter") announce(name); };
}
for (const picture of document.querySelectorAll("svg"))
  picture.addEventListener("click", event => {
    const [, name] = NAME.exec(linesOf(event.target)?.[0] ?? "") ?? [];
    if (name) announce(name);
  });
onSelect(name => {
  for (const row of $("rows").rows) {
    row.classList.toggle("chosen", nameOf(row) === name);
    if (nameOf(row) === name) row.scrollIntoView({ block: "nearest" });
  }
});
