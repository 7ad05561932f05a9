// The text of a computation, a line for each instruction.
const TEXT_ROW = 20;
const LONGEST = 600;  // characters of a line: the details have all of it
const TOKEN = /(%[\w.\-]+|"(?:[^"\\]|\\.)*"|\/\*.*?\*\/|\b(?:pred|token|opaque|tuple|[subf]\d+\w*|bf16|c64|c128)\[[^\]]*\](?:\{[^}]*\})?|[\w\-]+(?==)|\b[a-z][a-z0-9\-]*(?=\())/;

// A line with its names as links; `target(name)` says what a name leads to, or nothing.
function highlighted(line, target) {
  const shown = line.length > LONGEST ? line.slice(0, LONGEST) + "…" : line;
  return shown.split(TOKEN).map((part, k) => {
    if (k % 2 === 0) return part;
    if (part.startsWith("%")) {
      const act = target(part.slice(1));
      return act ? link(part, act) : make("b", "", part);
    }
    if (part.startsWith('"')) return make("span", "string", part);
    if (part.startsWith("/*")) return make("span", "dim", part);
    if (part.endsWith("]") || part.endsWith("}")) return make("span", "shape", part);
    return make("span", /^[a-z][a-z0-9\-]*$/.test(part) && !part.includes("_") ? "opcode" : "attribute", part);
  });
}
