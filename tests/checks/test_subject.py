"""Places of instructions under check, and reports made once."""

from __future__ import annotations

from pathlib import Path

from hloopt import load, parse_module
from hloopt.checks.results import Location
from hloopt.checks.subject import Subject
from hloopt.cost_models import CostModelChoice
from hloopt.ir import Instruction, Module, Opcode

_TEXT = """\
HloModule m, is_scheduled=true

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} negate(%a), metadata={op_name="jit(f)/neg" source_file="/src/f.py" source_line=3}
  ROOT %c = f32[8]{0} copy(%b)
}
"""


def _named(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def test_location_is_that_of_the_definition() -> None:
    subject = Subject("m.hlo", parse_module(_TEXT))
    found = subject.location_of(_named(subject.module, "b"))
    line = _TEXT.splitlines()[4]
    assert found == Location(
        "m.hlo", 5, 3, 5, len(line) + 1, "b", "main", "jit(f)/neg", "/src/f.py:3"
    )


def test_what_a_pass_made_has_no_line() -> None:
    module = parse_module(_TEXT)
    a = _named(module, "a")
    made = module.entry.add(Opcode.NEGATE, a.shape, [a])
    found = Subject("m.hlo", module).location_of(made)
    assert found.instruction == made.name
    assert (found.line, found.column, found.end_line, found.end_column) == (None,) * 4


def test_reports_are_made_once() -> None:
    subject = Subject("m.hlo", parse_module(_TEXT))
    assert subject.schedule is subject.schedule_under(CostModelChoice())
    other = CostModelChoice(target="h100_sxm")
    assert subject.schedule_under(other) is subject.schedule_under(other) is not subject.schedule
    assert subject.memory.report.statistics.device.argument == 32
    assert subject.memory is subject.memory
    assert subject.costs.module().flops == 8
    assert subject.loops == []
    assert subject.stage.scheduled.holds


def test_places_are_those_of_the_module(root: Path) -> None:
    for path in sorted((root / "testdata").glob("*_8dev.*.hlo"))[:6]:
        module = load(str(path))
        subject = Subject(str(path), module)
        assert module.source is not None
        for instruction in list(module.instructions())[
            :: max(1, module.instruction_count() // 200)
        ]:
            span, found = module.span_of(instruction), subject.location_of(instruction)
            assert span is not None
            assert (found.line, found.column) == span.location
            assert found.end_column == module.source.location(span.end)[1]
