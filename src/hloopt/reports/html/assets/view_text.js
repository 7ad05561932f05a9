// The text of a computation, a line for each instruction.
const TEXT_ROW = 20;
const LONGEST = 600;  // characters of a line: the details have all of it
const TOKEN = new RegExp([
  String.raw`%(?<name>[\w.\-]+)`,
  String.raw`(?<string>"(?:[^"\\]|\\.)*"?)`,
  String.raw`(?<dim>\/\*.*?\*\/)`,
  String.raw`(?<shape>\b(?:pred|token|opaque|tuple|[subf]\d+\w*|bf16|c64|c128)\[[^\]]*\](?:\{[^}]*\})?)`,
  String.raw`(?<attribute>[\w\-]+(?==))`,
  String.raw`(?<opcode>\b[a-z][a-z0-9\-]*(?=\())`,
  String.raw`(?<word>[A-Za-z_][\w.\-]*)`,
].join("|"), "g");

// A line with its names as links, with or without % in front; `target(name)` says what a name leads to,
// or nothing.
function highlighted(line, target) {
  const shown = line.length > LONGEST ? line.slice(0, LONGEST) + "…" : line;
  const parts = [];
  let at = 0;
  for (const match of shown.matchAll(TOKEN)) {
    const [part] = match, { name, word } = match.groups;
    parts.push(shown.slice(at, match.index));
    at = match.index + part.length;
    const act = name || word ? target(name ?? word) : null;
    if (act) parts.push(link(part, act));
    else if (word) parts.push(part);
    else if (name) parts.push(make("b", "", part));
    else parts.push(make("span", ["string", "dim", "shape", "attribute", "opcode"].find(style => match.groups[style]), part));
  }
  return [...parts, shown.slice(at)];
}
