const $ = id => document.getElementById(id);
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
$("rows").addEventListener("click", event => {
  const [, name] = NAME.exec(event.target.closest("tr")?.querySelector("td.name")?.title ?? "") ?? [];
  if (name) announce(name);
});
for (const picture of document.querySelectorAll("svg"))
  picture.addEventListener("click", event => {
    const [, name] = NAME.exec(linesOf(event.target)?.[0] ?? "") ?? [];
    if (name) announce(name);
  });
onSelect(name => {
  for (const row of $("rows").rows) {
    const [, found] = NAME.exec(row.querySelector("td.name")?.title ?? "") ?? [];
    row.classList.toggle("chosen", found === name);
    if (found === name) row.scrollIntoView({ block: "center" });
  }
});
