"""The instructions of a module as columns: what a script reads is what the module has."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from tests.reports.html.pages import column_texts

from hloopt.analysis.latency.model import Origin
from hloopt.cost_models import CostModelChoice
from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.reports.schedule.run import cycle_unit, run_times
from hloopt.reports.view.columns import Extras, module_columns, module_lines
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
FILES = (
    "transformer_scan_8dev.after_optimizations.hlo.gz",
    "transformer_scan_8dev.before_optimizations.hlo",
)


def texts(column: dict[str, Any], count: int) -> list[str]:
    """The text of each thing in a column."""
    found = column_texts(column)
    return found * count if len(found) == 1 and not column["at"] else found


@pytest.fixture(params=FILES)
def module(request: pytest.FixtureRequest) -> Module:
    return read_module(str(TESTDATA / request.param))


def test_instructions_have_their_names_operands_and_calls(module: Module) -> None:
    columns = module_columns(module, Extras())
    instructions, computations = columns["instructions"], columns["computations"]
    count = module.instruction_count()
    names = texts(instructions["name"], count)
    opcodes = texts(instructions["opcode"], count)
    sizes = computations["size"]
    homes = texts(computations["name"], len(sizes))
    assert len(names) == sum(sizes) == count
    assert homes[0] == module.entry.name
    assert set(homes) == set(module.computations)
    begins = [0, *accumulate(instructions["degree"])]
    calls: dict[int, list[str]] = {}
    for place, computation in zip(columns["calls"][::2], columns["calls"][1::2], strict=True):
        calls.setdefault(place, []).append(homes[computation])
    for home, begin, size in zip(homes, accumulate([0, *sizes]), sizes, strict=False):
        for place in range(begin, begin + size):
            instruction = module.computations[home][names[place]]
            assert opcodes[place] == instruction.opcode.value
            read = instructions["operand"][begins[place] : begins[place + 1]]
            assert [names[place - step] for step in read] == [o.name for o in instruction.operands]
            assert calls.get(place, []) == [called.name for called in instruction.called]


def test_callers_come_before_what_they_call(module: Module) -> None:
    columns = module_columns(module, Extras())
    names = texts(columns["computations"]["name"], len(columns["computations"]["size"]))
    order = {name: number for number, name in enumerate(names)}
    for computation in module.computations.values():
        for caller in computation.callers:
            assert order[caller.parent.name] < order[computation.name]


def test_lines_are_in_the_order_of_the_columns(module: Module) -> None:
    columns = module_columns(module, Extras())
    names = texts(columns["instructions"]["name"], module.instruction_count())
    lines = list(module_lines(module))
    assert [line.removeprefix("ROOT ").split(" ", 1)[0] for line in lines] == [
        f"%{name}" for name in names
    ]
    assert not any("\n" in line for line in lines)


SCOPED = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0), metadata={op_name="jit(f)/p"}
  a = f32[8] sine(p), metadata={op_name="jit(f)/layers/mlp/sin" source_file="a.py" source_line=3}
  b = f32[8] cosine(a), metadata={op_name="jit(f)/transpose(jvp(layers))/mlp/cos"}
  ROOT c = f32[8] negate(b)
}
"""


def test_scopes_are_a_tree() -> None:
    columns = module_columns(parse_module(SCOPED), Extras())
    names = texts(columns["scopes"]["name"], len(columns["scopes"]["parent"]))
    assert names == ["", "layers", "mlp", "layers, backward", "mlp"]
    assert columns["scopes"]["parent"] == [0, 0, 1, 0, 3]
    op_names = texts(columns["instructions"]["op_name"], 4)
    number = columns["instructions"]["op_name"]["at"]
    assert [columns["scopeOf"][n] for n in number] == [0, 2, 4, 0]
    assert op_names[1] == "jit(f)/layers/mlp/sin"
    assert texts(columns["instructions"]["source"], 4)[1] == "a.py:3"
    assert columns["instructions"]["bytes"] == [32, 32, 32, 32]


def test_what_is_not_known_is_not_there() -> None:
    module = parse_module(SCOPED)
    columns = module_columns(module, Extras())
    assert columns["alive"] is columns["times"] is None
    assert columns["changes"] == {}
    extras = Extras(alive=frozenset(("a",)), changes={"b": "added", "a": "changed", "c": "added"})
    columns = module_columns(module, extras)
    assert columns["alive"] == [1]
    assert columns["changes"] == {"changed": [1], "added": [2, 3]}


LOOP = """HloModule m, is_scheduled=true
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] sine(x)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}
condition {
  c = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  n = s32[] constant(TRIPS)
  ROOT less = pred[] compare(j, n), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  zero = s32[] parameter(1)
  start = s32[] constant(0)
  in = (s32[], f32[8]) tuple(INDEX, p)
  w = (s32[], f32[8]) while(in), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize(("index", "runs"), [("start", [1, 5, 6]), ("zero", [1, None, None])])
def test_computations_have_roles_and_runs(index: str, runs: list[int | None]) -> None:
    module = parse_module(LOOP.replace("TRIPS", "5").replace("INDEX", index))
    columns = module_columns(module, Extras())["computations"]
    found = dict(zip(texts(columns["name"], 3), texts(columns["role"], 3), strict=True))
    assert found == {"e": "entry", "body": "while", "condition": "while"}
    by_name = dict(zip(texts(columns["name"], 3), columns["runs"], strict=True))
    assert [by_name[name] for name in ("e", "body", "condition")] == runs


@pytest.mark.parametrize(("target", "seconds"), [("h100_sxm", 1e-6), (None, None)])
def test_times_have_their_unit(target: str | None, seconds: float | None) -> None:
    module = parse_module(SCOPED)
    times = run_times(module, CostModelChoice(target=target))
    columns = module_columns(module, Extras(times, cycle_unit(times)))
    found = columns["times"]
    assert found["secondsPerCycle"] == (None if seconds is None else pytest.approx(seconds))
    expected = [times.node_time(i) for i in module.instructions()]
    assert found["cycles"] == pytest.approx([time.cycles for time in expected])
    assert any(found["cycles"])
    guessed = [place for place, time in enumerate(expected) if time.origin is Origin.GUESS]
    assert found["guessed"] == guessed


def test_a_loop_has_no_time_of_its_own() -> None:
    module = parse_module(LOOP.replace("TRIPS", "5").replace("INDEX", "start"))
    times = run_times(module, CostModelChoice(target="h100_sxm"))
    columns = module_columns(module, Extras(times, cycle_unit(times)))
    opcodes = texts(columns["instructions"]["opcode"], module.instruction_count())
    found = zip(opcodes, columns["times"]["cycles"], strict=True)
    assert {opcode for opcode, cycles in found if cycles is None} == {"while"}


def test_an_instruction_without_a_source_line_has_none() -> None:
    columns = module_columns(parse_module(SCOPED), Extras())["instructions"]
    assert texts(columns["source"], 4) == ["", "a.py:3", "", ""]


def test_names_in_lines_have_a_sigil() -> None:
    lines = list(module_lines(parse_module(SCOPED)))
    assert lines[1].startswith("%a = f32[8]{0} sine(%p), metadata={")
    assert lines[3] == "ROOT %c = f32[8]{0} negate(%b)"
