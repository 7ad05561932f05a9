// The fragment of the page's address: the view, what is selected, and what is open.

function address() {
  const words = new URLSearchParams({ tab: state.tab, computation: model.computation(state.computation) });
  if (state.instruction >= 0) words.set("instruction", model.name(state.instruction));
  if (treeBy === "scope") words.set("by", "scope");
  if (path[0] === wholePart(model, state.computation)) for (const { key } of path.slice(1)) words.append("open", key);
  return "#" + words;
}

// Write the address: as a step of the browser's history where the user chose something.
function keepAddress(isStep = false) {
  if (location.hash === address()) return;
  if (isStep) history.pushState(null, "", address()); else history.replaceState(null, "", address());
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1)), tab = words.get("tab");
  state.tab = document.querySelector(`#tabs button[data-tab="${CSS.escape(tab ?? "")}"]`) ? tab : data.tab;
  state.computation = model.computationNames.get(words.get("computation")) ?? 0;
  state.instruction = (words.has("instruction") ? instructionOf(state.computation, words.get("instruction")) : undefined) ?? -1;
  state.removed = -1;
  path = pathByKeys(model, state.computation, words.getAll("open"));
  if (words.get("by") === "scope" && treeBy !== "scope") listBy("scope");
  if (state.instruction >= 0) openAround(state.instruction);
}
