"""Laws of the passes between bf16 and f32: nothing is rounded that its readers had not rounded."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.passes.precision.rounded import assert_same_results
from tests.properties.strategies.modules import module_texts

from hloopt.interpreter.errors import RunError
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

READS = (
    *(Opcode.ADD, Opcode.MULTIPLY, Opcode.SUBTRACT, Opcode.NEGATE, Opcode.EXPONENTIAL),
    *(Opcode.MAXIMUM, Opcode.COMPARE, Opcode.DOT, Opcode.TANH, Opcode.DIVIDE),
)
MOVES = ("tuple", "get-tuple-element", "while", "conditional", "call", "fusion", "convert")
rules = st.one_of(
    st.just(True),
    st.lists(st.sampled_from(READS)).map(
        lambda chosen: {"opcodes": [*MOVES, *(opcode.value for opcode in chosen)]}
    ),
)


@given(module_texts(), st.lists(st.sampled_from(READS), min_size=3), rules, rules)
@settings(max_examples=60)
def test_readers_see_what_they_saw(
    text: str, reads: list[Opcode], output: object, mixed: object
) -> None:
    support: Mapping[str, object] = {
        "operand": True,
        "output": output,
        "mixed": mixed,
        "operand_effectively_low": {"opcodes": [opcode.value for opcode in reads]},
    }
    module = parse_module(text)
    run = create_pass("bfloat16-propagation", {"float_support": support}).run
    if run(module, PassContext()):
        assert verify_module(module, ANY_TARGET) == []
        try:
            assert_same_results(text, module, reads)
        except RunError:
            return  # beyond the interpreter, before the pass as well
