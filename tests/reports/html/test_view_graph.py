"""Graphs in the page of a module: laws over generated ones, layouts that fail. Needs a browser."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reports.html.browsing import (
    BROWSER,
    H100,
    click,
    having,
    press,
    show,
    text,
    until,
)

from gallery_lib.chromium import Tab
from hloopt.cost_models import CostModelChoice
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

pytestmark = BROWSER

Edit = Callable[[str, str], Path]


def generated(seed: int) -> str:
    """A module with scopes in scopes, repeats, many parameters, constants and long plain chains."""
    choose = random.Random(seed)
    lines = [f"  p{n} = f32[8] parameter({n})" for n in range(choose.choice((1, 9)))]
    names = [line.split()[0] for line in lines]
    for n in range(choose.choice((3, 60, 400))):
        name = f"x{n}"
        if choose.random() < 0.1:
            lines.append(f"  {name} = f32[8] constant({{1,2,3,4,5,6,7,8}})")
        else:
            opcode = choose.choice(("add", "multiply", "maximum"))
            operands = ", ".join(choose.choices(names[-6:], k=2))
            depth = choose.randrange(4)
            scope = "".join(f"{choose.choice('ab')}_{choose.randrange(3)}/" for _ in range(depth))
            place = f', metadata={{op_name="jit(f)/{scope}{opcode}"}}' if depth else ""
            lines.append(f"  {name} = f32[8] {opcode}({operands}){place}")
        names.append(name)
    lines.append(f"  ROOT r = f32[8] negate({names[-1]})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def write(
    tmp_path: Path, hlo: str, model: CostModelChoice | None = None, limit: int = 30_000
) -> Path:
    """A page whose layouts have some milliseconds: many, where other tests run beside this one."""
    path = tmp_path / "graph.html"
    view = view_of(parse_module(hlo), None, model or CostModelChoice())
    assert "LAYOUT_TIME = 1000" in view
    path.write_text(view.replace("LAYOUT_TIME = 1000", f"LAYOUT_TIME = {limit}"), encoding="utf-8")
    return path


_LAWS = """(() => {
  const faults = [], parts = [wholePart(model, 0)];
  const isConstant = i => model.text("opcode", i) === "constant";
  for (let k = 0; k < parts.length; k++)
    for (const most of MOST_NODES) {
      const part = parts[k], counts = new Map();
      const nodes = graphNodes(model, part.members, part.scope, most);
      for (const { members } of nodes)
        for (const i of members) counts.set(i, (counts.get(i) ?? 0) + 1);
      for (const i of part.members)
        if ((counts.get(i) ?? 0) !== (isConstant(i) ? 0 : 1)) faults.push(["not once", i, most]);
      if (counts.size !== part.members.filter(i => !isConstant(i)).length)
        faults.push(["from elsewhere", k]);
      if (nodes.length > most) faults.push(["too many", k, most, nodes.length]);
      if (most !== MOST_NODES[0]) continue;
      for (const node of nodesOf(model, part)) {
        if (node.kind === "instruction") continue;
        for (const i of node.members) {
          const inside = partInside(model, part, node, i);
          if (!inside.members.includes(i)) faults.push(["not inside", i]);
          if (!parts.includes(inside)) parts.push(inside);
        }
      }
    }
  for (let i = 0; i < model.count; i++) {
    const path = [wholePart(model, 0)];
    openPathAt(model, path, i);
    const node = nodesOf(model, path.at(-1)).find(({ members }) => members.includes(i));
    if (!isConstant(i) && node?.kind !== "instruction") faults.push(["not alone", i]);
    const again = pathByKeys(model, 0, path.slice(1).map(({ key }) => key));
    if (again.some((part, k) => part !== path[k]) || again.length !== path.length)
      faults.push(["not found again", i]);
  }
  return faults.slice(0, 5); })()"""


@pytest.mark.parametrize("seed", range(8))
def test_each_instruction_is_in_one_node_and_can_be_opened(
    tab: Tab, tmp_path: Path, seed: int
) -> None:
    show(tab, write(tmp_path, generated(seed)))
    assert tab.run(_LAWS) == []
    assert tab.errors() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_selection_ends_at_a_picture_that_has_it(tab: Tab, tmp_path: Path, seed: int) -> None:
    path = write(tmp_path, generated(seed))
    show(tab, path)
    choose = random.Random(seed)
    count = tab.run("model.count")
    for instruction in choose.sample(range(count), min(count, 8)):
        tab.run(f"go({{ instruction: {instruction} }}), 1")
        title = "%" + tab.run(f"model.name({instruction})")
        if tab.run(f"model.text('opcode', {instruction})") == "constant":
            until(tab, "document.querySelector('#graphNote').textContent.includes('is selected')")
        else:
            script = "document.querySelector('.node.chosen')?.getAttribute('aria-label')"
            until(tab, f"({script} ?? '').startsWith('{title},')")
        fragment = tab.run("location.hash")
    opened = tab.run("document.querySelector('#path').textContent")
    show(tab, path, fragment)
    until(tab, f"document.querySelector('#path').textContent === {opened!r}")
    assert tab.errors() == []


# -- layouts that fail ----------------------------------------------------------------------------


FLAT = (
    "HloModule flat\nENTRY e {\n  x0 = f32[8] parameter(0)\n"
    + "".join(f"  x{n} = f32[8] sine(x{n - 1})\n" for n in range(1, 200))
    + "  ROOT r = f32[8] negate(x199)\n}\n"
)
LAYOUT = "const graph = new dagre"


def changed(tmp_path: Path, script: str) -> Path:
    """The page of a plain chain whose layout begins with a script."""
    path = write(tmp_path, FLAT, limit=1000)
    page = path.read_text(encoding="utf-8")
    assert LAYOUT in page
    path.write_text(page.replace(LAYOUT, f"{script}\n{LAYOUT}"), encoding="utf-8")
    return path


_COUNT_WORKERS = """(() => { window.started = 0; const made = Worker;
  Worker = class extends made { constructor(...words) { super(...words); started++; } }; })(), 1"""


def test_the_error_of_a_layout_is_shown_once(tab: Tab, tmp_path: Path) -> None:
    show(tab, changed(tmp_path, "throw new Error('boom');"))
    until(tab, "document.querySelector('#graphNote.doubt')?.textContent.includes('boom')")
    tab.run(_COUNT_WORKERS)
    tab.run("go({ tab: 'text' }), go({ tab: 'graph' }), go({ computation: 0 }), 1")
    time.sleep(0.3)
    assert tab.run("started") == 0
    assert "boom" in text(tab, "#graphNote")
    click(tab, "button[data-tab=calls]")
    until(tab, "document.querySelector('#callsNote.doubt')?.textContent.includes('boom')")
    assert tab.errors() == []


def test_all_tries_of_a_layout_have_one_second(tab: Tab, tmp_path: Path) -> None:
    for _ in range(3):  # other work of the machine makes a browser late
        show(tab, changed(tmp_path, "for (;;);"))
        tab.run("wholeParts.clear(), path = [], isDrawn = null, go({ instruction: 7 }), 1")
        assert text(tab, "#graphNote") == "laying out …"
        begin = time.monotonic()
        until(tab, "document.querySelector('#graphNote').textContent.includes('was cancelled')")
        seconds = time.monotonic() - begin
        if seconds < 2:
            break
    assert 0.5 < seconds < 2
    tab.run(_COUNT_WORKERS)
    tab.run("go({ computation: 0, instruction: 5 }), 1")
    time.sleep(0.3)
    assert tab.run("started") == 0
    assert tab.errors() == []


def test_a_coarser_layout_still_shows_the_selection(tab: Tab, tmp_path: Path) -> None:
    path = changed(tmp_path, "if (nodes.length > 120) for (;;);")
    show(tab, path, "#tab=graph&computation=e&instruction=x150")
    assert text(tab, ".node.chosen .title") == "%x150"
    assert tab.run("document.querySelectorAll('#path .link').length") > 1
    assert tab.errors() == []


# -- boxes ----------------------------------------------------------------------------------------


LAYERS = (
    """HloModule m, is_scheduled=true, replica_count=2
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x0 = f32[1024] parameter(0)
"""
    + "".join(
        f"""  a{n} = f32[1024] sine(x{n}), metadata={{op_name="jit(f)/layer_{n}/in/a"}}
  b{n} = f32[1024] cosine(a{n}), metadata={{op_name="jit(f)/layer_{n}/in/b"}}
  x{n + 1} = f32[1024] {"all-reduce" if not n else "negate"}(b{n}){
            ", replica_groups={{0,1}}, to_apply=sum" if not n else ""
        }, metadata={{op_name="jit(f)/layer_{n}/out"}}
"""
        for n in range(5)
    )
    + "  ROOT r = f32[1024] negate(x5)\n}\n"
)


PATH = "document.querySelector('#path').textContent.replace(/[^!-~]+/g, ' ')"
"""Its words: those of links and buttons, without their signs."""


def test_parts_that_are_alike_are_gone_through(tab: Tab, tmp_path: Path) -> None:
    show(tab, write(tmp_path, LAYERS))
    group = having(".node.group", "layer_*")
    until(tab, f"{group}?.focus(), document.activeElement.matches('.node')")
    press(tab, "Enter")
    until(tab, f"{PATH}.includes('1 of 4')")
    until(tab, "document.activeElement.dataset.n === '0'")  # of the new picture
    assert tab.run("document.querySelector('.step').disabled")
    press(tab, "n")
    until(tab, f"{PATH}.includes('layer_2 2 of 4')")
    tab.run("go({ instruction: model.byName.get('b2') }), 1")
    until(tab, f"{PATH}.endsWith('2 of 4 in')")
    tab.run("document.querySelectorAll('.step')[1].click(), 1")
    until(tab, f"{PATH}.endsWith('layer_3 3 of 4 in')")
    press(tab, "p", "p", "p", "p")
    until(tab, f"{PATH}.endsWith('layer_1 1 of 4 in')")
    assert tab.errors() == []


@pytest.mark.parametrize(("model", "kind"), [(None, "compute"), (H100, "collective")])
def test_a_group_has_the_colour_of_what_it_has_most_of(
    tab: Tab, tmp_path: Path, model: CostModelChoice | None, kind: str
) -> None:
    """By instructions, or by time where it is known."""
    show(tab, write(tmp_path, LAYERS, model))
    until(tab, f"{having('.node.group', 'layer_0')} !== undefined")
    label, style = tab.run(
        f"(e => [e.getAttribute('aria-label'), e.getAttribute('class')])"
        f"({having('.node.group', 'layer_0')})"
    )
    assert label == "layer_0, 3 instructions, 1 collective"
    assert f"kind-{kind}" in style
    legend = tab.run("[...document.querySelectorAll('#graphLegend li')].map(e => e.textContent)")
    kinds = tab.run("[...new Set(path.at(-1).picture.nodes.map(node => node.kind))]")
    assert sorted(legend) == sorted(kinds)
    assert tab.errors() == []


def test_the_first_view_is_full_of_boxes(tab: Tab, page: Path) -> None:
    show(tab, page)
    until(tab, "document.querySelectorAll('.node').length > 0")
    seen = tab.run("""(() => { const around = $("graphPicture").getBoundingClientRect();
      return [...document.querySelectorAll("#graphPicture .node")].filter(node => {
        const box = node.getBoundingClientRect();
        return box.left >= around.left && box.right <= around.right && box.top < around.bottom;
      }).length; })()""")
    assert seen >= 8
    assert tab.run("document.querySelector('marker').getAttribute('markerUnits')") == (
        "userSpaceOnUse"
    )


def test_a_page_whose_data_cannot_be_read_says_what_to_do(tab: Tab, page: Path) -> None:
    broken = page.with_name("broken.html")
    broken.write_text(
        page.read_text(encoding="utf-8").replace('id="columnsData">', 'id="columnsData">AAAA', 1),
        encoding="utf-8",
    )
    tab.open(broken)
    assert text(tab, "#details h2") == "This page failed"
    assert "Chromium 92" in text(tab, "#details")
