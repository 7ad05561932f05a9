"""The instructions of a module as columns: what a script reads is what the module has."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from tests.reports.html.pages import column_texts

from hloopt.files import read_module
from hloopt.ir import Module
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
            assert (place in columns["roots"]) == instruction.is_root


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
    assert columns["alive"] is columns["microseconds"] is None
    assert columns["changes"] == {}
    extras = Extras(alive=frozenset(("a",)), changes={"b": "added", "a": "changed", "c": "added"})
    columns = module_columns(module, extras)
    assert columns["alive"] == [1]
    assert columns["changes"] == {"changed": [1], "added": [2, 3]}
