document.querySelector("svg").addEventListener("mousemove", event => {
  showTip(event, data[event.target.dataset.i]);
});
