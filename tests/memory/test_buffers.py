"""The values that must share memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.memory.modules import LOOP_CONDITION, module_text
from tests.properties.strategies.modules import module_texts

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.in_place import InPlace
from hloopt.diagnostics import HloVerifyError
from hloopt.memory.buffers import Buffers, read_only_values, shared_values
from hloopt.text import parse_module


def shared(*lines: str, header: str = "is_scheduled=true", before: str = "") -> list[list[str]]:
    """The buffers of several values, by the names of their definers."""
    flow = Dataflow.of(parse_module(module_text(*lines, header=header, before=before)))
    return [
        [flow.definer[v].name + "".join(f".{i}" for i in flow.index(v)) for v in buffer.values]
        for buffer in Buffers.of(flow).all
        if len(buffer.values) > 1
    ]


def test_the_state_of_a_loop_lies_in_one_place() -> None:
    body = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  ROOT r = (s32[], f32[100]) tuple(next, x) }"""
    found = shared(
        "a = s32[] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = s32[] copy(a)",
        "t = (s32[], f32[100]) tuple(c, b)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        before=LOOP_CONDITION + body,
    )
    assert found == [["next", "c", "p.0", "q.0", "w.0"], ["r", "t", "p", "q", "w"]]


def test_results_of_branches_share_with_that_of_the_conditional() -> None:
    found = shared(
        "p = pred[] parameter(0)",
        "a = f32[4] parameter(1)",
        "c = f32[4] conditional(p, a, a), true_computation=f, false_computation=g",
        before="""
f { x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x) }
g { y = f32[4] parameter(0)
  ROOT s = f32[4] sine(y) }""",
    )
    assert found == [["n", "s", "c"]]


def test_updates_share_with_what_they_update() -> None:
    found = shared(
        "a = f32[8] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "c = f32[8] copy(a)",
        "d = f32[8] dynamic-update-slice(c, u, i)",
        "e = f32[8] dynamic-update-slice(d, u, i)",
    )
    assert found == [["c", "d", "e"]]


@pytest.mark.parametrize("kind", ["may-alias", "must-alias"])
def test_outputs_share_with_the_parameters_they_are_aliased_with(kind: str) -> None:
    found = shared(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "t = (f32[8]) tuple(b)",
        header=f"is_scheduled=true, input_output_alias={{ {{0}}: (0, {{}}, {kind}) }}",
    )
    assert found == [["a", "b"]]


def test_a_donor_alone_shares_nothing() -> None:
    assert not shared(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        header="is_scheduled=true, buffer_donor={ (0, {}) }",
    )


def test_an_annotation_of_an_operand_that_is_not_there_shares_nothing() -> None:
    line = 'r = f32[8] custom-call(a), custom_call_target="f", output_to_operand_aliasing='
    assert shared("a = f32[8] parameter(0)", line + "{{}: (1, {})}") == []
    assert shared("a = f32[8] parameter(0)", line + "{{}: (0, {})}") == [["a", "r"]]


def test_an_alias_of_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(HloVerifyError, match="parameter 3"):
        shared(
            "a = f32[4] parameter(0)",
            "b = f32[4] negate(a)",
            header="is_scheduled=true, input_output_alias={ {}: (3, {}) }",
        )


def test_a_buffer_is_as_large_as_its_largest_value_and_has_their_color() -> None:
    flow = Dataflow.of(
        parse_module(
            module_text(
                "a = f32[<=8]{0:S(5)} parameter(0)",
                "s = s32[] parameter(1)",
                'r = f32[8]{0:S(5)} custom-call(a), custom_call_target="f", '
                "output_to_operand_aliasing={{}: (0, {})}",
            )
        )
    )
    buffer = Buffers.of(flow).of_value[flow.held[flow.module.entry.root][0]]
    assert (buffer.size, buffer.color, buffer.is_live_out) == (36, 5, True)


def check_shared(text: str) -> None:
    """Values that must share a buffer are those of one buffer, however they are asked for."""
    flow = Dataflow.of(parse_module(text))
    buffers = [buffer.values for buffer in Buffers.of(flow).all if len(buffer.values) > 1]
    expected = {value: values for values in buffers for value in values}
    assert shared_values(flow, InPlace()) == expected


@given(module_texts())
def test_values_that_share_are_those_of_one_buffer(text: str) -> None:
    check_shared(text)


CHAIN = (
    "a = f32[8] parameter(0)",
    "u = f32[1] parameter(1)",
    "i = s32[] parameter(2)",
    "c = f32[8] copy(a)",
    "d = f32[8] dynamic-update-slice(c, u, i)",
    "e = f32[8] dynamic-update-slice(a, u, i)",
    "f = f32[8] dynamic-update-slice(d, u, i)",
    "g = f32[8] dynamic-update-slice(f, u, i)",
    "h = f32[8] dynamic-update-slice(c, u, i)",
    "k = f32[8] dynamic-update-slice(e, u, i)",
    "t = (f32[8], f32[8], f32[8]) tuple(g, h, k)",
)


def test_chains_of_values_share_with_all_of_their_chain() -> None:
    assert shared(*CHAIN) == [["a", "e", "k"], ["c", "d", "f", "g", "h"]]
    joined = shared(*CHAIN, header="is_scheduled=true, input_output_alias={ {1}: (0, {}) }")
    assert joined == [["a", "c", "d", "f", "g", "h", "e", "k"]]
    check_shared(module_text(*CHAIN))
    twice = "is_scheduled=true, input_output_alias={ {2}: (0, {}) }"  # as in place, too
    check_shared(module_text(*CHAIN, header=twice))
    check_shared(
        module_text(*CHAIN, header="is_scheduled=true, input_output_alias={ {1}: (0, {}) }")
    )


def test_constants_and_arguments_that_no_output_takes_over_are_read_only() -> None:
    lines = (
        "p = (f32[8], f32[4]) parameter(0)",
        "q = f32[4] parameter(1)",
        "k = f32[4] constant({1, 2, 3, 4})",
        "x = f32[8] get-tuple-element(p), index=0",
        "y = f32[4] add(q, k)",
        "t = (f32[8], f32[4]) tuple(x, y)",
    )
    text = "input_output_alias={ {0}: (0, {0}), {1}: (1, {}) }"
    flow = Dataflow.of(parse_module(module_text(*lines, header=f"is_scheduled=true, {text}")))
    names = {
        flow.definer[v].name + "".join(f".{i}" for i in flow.index(v))
        for v in read_only_values(flow, Buffers.of(flow).aliases)
    }
    assert names == {"p", "p.1", "k"}
