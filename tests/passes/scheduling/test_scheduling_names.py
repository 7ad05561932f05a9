"""Names under which instructions were scheduled, in their metadata."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.values.metadata import parse_metadata
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

PASS = "scheduling-instruction-annotator"
TEXT = """HloModule m, is_scheduled=true
fused { q = f32[4] parameter(0)  z = f32[] constant(2)  b = f32[4] broadcast(z), dimensions={}
  ROOT n = f32[4] multiply(q, b) }
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
ENTRY e {
  p = f32[4] parameter(0), metadata={op_name="in" source_file="f.py" source_line=3}
  c = f32[] constant(0)
  f = f32[4] fusion(p), kind=kLoop, calls=fused
  r = f32[] reduce(f, c), dimensions={0}, to_apply=sum
  rs = ((f32[4]), f32[2], u32[]) reduce-scatter-start(f), dimensions={0}, replica_groups={{0,1}}, to_apply=sum
  rd = f32[2] reduce-scatter-done(rs)
  ROOT t = (f32[], f32[2]) tuple(r, rd)
}
"""  # noqa: E501  # an instruction is one line


def scheduling_names(module: Module) -> dict[str, str]:
    return {
        i.name: parse_metadata(text).scheduling_name
        for i in module.instructions()
        if (text := i.attributes.get("metadata"))
    }


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def annotated(text: str) -> Module:
    module = parse_module(text)
    assert create_pass(PASS).run(module, PassContext(PASS))
    return module


def test_all_but_constants_get_their_names_in_every_computation() -> None:
    module = annotated(TEXT)
    names = scheduling_names(module)
    wrapped = find(module, "rs").called[0].root.name
    assert names.pop(wrapped) == "rd"  # the text has one metadata for it and the done
    assert names == {n: n for n in ("q", "b", "n", "x", "y", "s", *"pfrt", "rs", "rd")} | {
        i.name: i.name for i in find(module, "rs").called[0].parameters
    }


def test_other_metadata_stays() -> None:
    text = print_module(annotated(TEXT))
    assert 'metadata={op_name="in" source_file="f.py" source_line=3 scheduling_name="p"}' in text


def test_what_is_printed_reads_back_as_it_is_and_a_second_run_changes_nothing() -> None:
    module = annotated(TEXT)
    again = parse_module(print_module(module))
    assert scheduling_names(again) == scheduling_names(module)
    for each in (module, again):
        assert not create_pass(PASS).run(each, PassContext(PASS))


def test_the_name_of_an_earlier_schedule_stays() -> None:
    text = TEXT.replace('{op_name="in"', '{op_name="in" scheduling_name="old"')
    assert scheduling_names(annotated(text))["p"] == "old"


def test_a_module_without_a_schedule_is_refused() -> None:
    with pytest.raises(PassRefused, match="needs a module with a schedule"):
        create_pass(PASS).run(parse_module(TEXT.replace(", is_scheduled=true", "")), PassContext())


def test_the_verifier_holds_later_passes_to_the_names() -> None:
    options = VerifierOptions(verify_instruction_name_unchanged=True)
    text = print_module(annotated(TEXT))
    module = parse_module(text)
    find(module, "f").name = "g"
    messages = [e.message for e in verify_module(module, options)]
    assert any("Was 'f' in scheduling, is 'g'" in message for message in messages)


def test_the_limit_stops_it() -> None:
    module = parse_module(TEXT)
    create_pass(PASS).run(module, PassContext(PASS, applications=Applications(limit=2)))
    assert sum(map(bool, scheduling_names(module).values())) == 2
