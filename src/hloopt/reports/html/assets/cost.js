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
