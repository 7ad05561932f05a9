// The list of what differs from the module before.
let changes = [];
const STYLES = { "+": "mark-added", "-": "mark-removed", "~": "mark-changed" };

const changeList = $("changeLines") && rowList($("changeLines"), {
  height: TEXT_ROW,
  rowAt(n) {
    const { mark, name, text } = changes[n];
    return make("div", `line ${STYLES[mark] ?? "mark-head"}`, `${mark} `, middle(text || name, LONGEST));
  },
  keyAt: n => n,
  canChoose: n => changes[n].mark === "-" || model.byName.has(changes[n].name),
  choose: n => go(changes[n].mark === "-" ? { removed: n } : { instruction: model.byName.get(changes[n].name) }),
});

async function showChanges() {
  if (!changes.length) changes = JSON.parse(await unpack("changesData")).map(([mark, name, text]) => ({ mark, name, text }));
  $("changesNote").textContent = changes.length ? "" : "the modules do not differ";
  const { instruction: i, removed } = state;
  changeList.show(changes.length, removed >= 0 ? removed
    : i < 0 ? -1 : changes.findIndex(({ mark, name }) => mark !== "-" && name === model.name(i)));
}

// What is known of an instruction that the module has no more.
function detailsOfRemoved(n) {
  const { name, text } = changes[n];
  let head = n;
  while (head && changes[head].mark !== " ") head--;
  return [make("h2", "", cutName(name)),
    make("dl", "facts", make("dt", "", "change"), make("dd", "", "removed: it is in the module before only"),
      make("dt", "", "computation"), make("dd", "", middle(changes[head].text, 200))),
    make("pre", "", text)];
}
