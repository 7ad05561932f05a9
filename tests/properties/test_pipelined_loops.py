"""The collective pipeliner keeps what loops compute, in all directions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.pipelined_loops import HAS_SIDE_EFFECT, pipelined_programs

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Value
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

EVERYTHING = ("all-reduce", "reduce-scatter", "all-gather", "collective-permute")
SETTINGS = RunSettings(seeds=3)


def told(module: Module) -> Counter[int]:
    """The number of side effects a module has on each device."""
    found: Counter[int] = Counter()

    def note(device: Device, instruction: Instruction, _value: Value) -> None:
        if instruction.opcode is Opcode.CUSTOM_CALL and has_own_side_effect(instruction):
            found[device.number] += 1

    SETTINGS.run_made_up(SETTINGS.place(module), 0, note)
    return found


def run(module: Module, **options: object) -> PassContext:
    before, version = print_module(module), module.version
    context = PassContext("collective-pipeliner")
    changed = create_pass("collective-pipeliner", options).run(module, context)
    assert changed == (module.version != version) == (print_module(module) != before)
    assert verify_module(module) == []
    assert_consistent(module)
    return context


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
@settings(max_examples=25)
@given(data=st.data())
def test_the_program_stays_the_same(direction: str, data: st.DataObject) -> None:
    text = data.draw(pipelined_programs())
    options = data.draw(
        st.fixed_dictionaries(
            {
                "reuse_pipelined_op_buffer": st.booleans(),
                "unique_channel_id": st.booleans(),
                "pipeline_use_tree": st.sampled_from((True, True, False)),
                "max_pipelining_per_loop": st.sampled_from((None, None, 1)),
                "should_allow_loop_variant_parameter_in_chain": st.booleans(),
            }
        )
    )
    module = parse_module(text)
    reference = Reference(parse_module(text), SETTINGS)
    run(module, pipelining_direction=direction, should_process=EVERYTHING, **options)
    found = reference.compare(parse_module(print_module(module)))
    assert found is None, found.reason
    if HAS_SIDE_EFFECT in text:
        assert told(module) == told(parse_module(text))


@settings(max_examples=25)
@given(text=pipelined_programs(), reuse=st.booleans(), is_last=st.booleans())
def test_rounds_after_each_other_keep_the_program(text: str, reuse: bool, is_last: bool) -> None:
    module = parse_module(text)
    reference = Reference(parse_module(text), SETTINGS)
    for level, opcodes in enumerate((EVERYTHING[:2], EVERYTHING[2:], EVERYTHING)):
        run(
            module,
            should_process=opcodes,
            level_to_operate_on=level,
            last_run=is_last and level == 2,
            reuse_pipelined_op_buffer=reuse,
        )
        found = reference.compare(module)
        assert found is None, found.reason
    run(module, pipelining_direction="backward", should_process=EVERYTHING)
    run(module, pipelining_direction="forward-sink", should_process=EVERYTHING)
    found = reference.compare(module)
    assert found is None, found.reason


@pytest.mark.oracle
@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
@settings(max_examples=15)
@given(
    text=pipelined_programs().filter(lambda text: HAS_SIDE_EFFECT not in text),  # XLA has none
    reuse=st.booleans(),
)
def test_xla_computes_the_same_of_both(direction: str, text: str, reuse: bool) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    from hloopt.xla.engine import run_with_xla

    on_xla = RunSettings(seeds=1, engine=run_with_xla)
    module = parse_module(text)
    run(
        module,
        pipelining_direction=direction,
        should_process=EVERYTHING,
        reuse_pipelined_op_buffer=reuse,
        unique_channel_id=True,
    )
    found = Reference(parse_module(text), on_xla).compare(module)
    assert found is None, found.reason
