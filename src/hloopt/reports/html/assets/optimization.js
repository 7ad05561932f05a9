// Two timelines, each a page of its own in a frame.
for (const side of data) unpack(side + "Page").then(page => {
  const frame = document.createElement("iframe");
  frame.title = "timeline " + side;
  frame.srcdoc = page;
  $(side).replaceChildren(frame);
});
