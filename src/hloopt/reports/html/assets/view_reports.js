// Reports: pages of their own in frames, which tell what is chosen in them, and are told.
const frames = new Map();  // by view: the frame, and the instruction that it has selected

async function showReport(name) {
  if (data.missing[name]) return;
  if (!frames.has(name)) {
    const frame = document.createElement("iframe"), report = { frame, told: -1 };
    frame.title = name;
    frames.set(name, report);
    report.isLoaded = unpack(name + "Page").then(page => new Promise(resolve => {
      frame.srcdoc = page;
      frame.onload = resolve;
      $(name).replaceChildren(frame);
    }));
  }
  await frames.get(name).isLoaded;
  if (state.tab === name) tellReport(frames.get(name));
}

// A report that has an instruction selected is not told again: it keeps its place.
function tellReport(report) {
  const i = state.instruction;
  if (report.told === i) return;
  report.told = i;
  const select = i < 0 ? null : { name: model.name(i), computation: model.computation(model.home[i]) };
  report.frame.contentWindow.postMessage({ select }, "*");
}

addEventListener("message", ({ data: told, source }) => {
  const report = [...frames.values()].find(({ frame }) => frame.contentWindow === source);
  if (!report || !model) return;
  if (told?.key) return shortcut(told.key);
  if (!told?.selected) return;
  const { name, computation } = told.selected, c = model.computationNames.get(computation);
  const i = c === undefined ? model.byName.get(name) : instructionOf(c, name);
  if (i === undefined) return;
  report.told = i;
  if (i !== state.instruction) go({ instruction: i });
});

function instructionOf(c, name) {
  for (let i = model.first[c]; i < model.first[c + 1]; i++) if (model.name(i) === name) return i;
}
