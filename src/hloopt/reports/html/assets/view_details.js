// All that is known of one instruction.
const MOST_LINKS = 40;
const cutName = name => middle("%" + name, 120);

function detailsOf(model, lines, i, go) {
  const facts = [], add = (name, ...value) => { if (value[0]) facts.push(make("dt", "", name), make("dd", "", ...value)); };
  const c = model.home[i], position = i - model.first[c];
  const instruction = o => link(cutName(model.name(o)), () => go({ instruction: o }));
  const several = all => {
    const shown = [...all].slice(0, MOST_LINKS).flatMap(o => [instruction(o), " "]);
    return all.length > MOST_LINKS ? [...shown, `and ${(all.length - MOST_LINKS).toLocaleString("en")} more`] : shown;
  };
  add("opcode", model.text("opcode", i));
  add("shape", middle(model.text("shape", i), 400));
  add("bytes", bytes(model.bytes[i]));
  add("time", timeOf(model, i));
  add("runs", model.runs[c] === null ? "" : model.runs[c].toLocaleString("en"));
  add("computation", link(cutName(model.computation(c)), () => go({ computation: c })));
  add(model.isScheduled ? "in the schedule" : "in the text",
    `${(position + 1).toLocaleString("en")} of ${(model.first[c + 1] - model.first[c]).toLocaleString("en")}`);
  if (model.alive) add("at the peak", model.alive.has(i) ? "alive" : "not alive");
  add("change", model.changeOf.get(i));
  add("made by", middle(model.origins[i] ?? "", 400));
  add("operands", ...several(model.operands(i)));
  add("users", ...several(model.users(i)));
  add("calls", ...model.called(i).flatMap(to => [link(cutName(model.computation(to)), () => go({ computation: to })), " "]));
  add("called from", ...several(model.callers(c)));
  add("op_name", ...pathParts(middle(model.text("op_name", i), 180)));
  add("source", ...pathParts(middle(model.text("source", i), 180)));
  return [make("h2", "", cutName(model.name(i))), make("dl", "facts", ...facts),
    make("pre", "", lines ? lines[i] : "")];
}

// The time of one run; nothing where what it calls takes it.
function timeOf(model, i) {
  const cycles = model.times?.cycles[i] ?? null;
  if (cycles === null) return "";
  return `${duration(cycles, model.times.secondsPerCycle)} a run${model.guessed.has(i) ? ", a guess" : ""}`;
}

// What a page says before anything is chosen.
function overview(facts) {
  const keys = tabs.map(({ dataset, textContent: title }) =>
    `${Object.keys(VIEWS).find(key => VIEWS[key] === dataset.tab)} ${title.toLowerCase()}`);
  return [make("h2", "", "Module"),
    make("dl", "facts", ...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)])),
    make("p", "hint", ["/ searches", "arrows and Enter move in lists", ...keys, "n and p go through parts that are alike"].join(" · "))];
}
