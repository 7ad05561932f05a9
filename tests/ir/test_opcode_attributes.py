"""Attributes per opcode: what is allowed, required, and printed."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.opcode_attributes import (
    allowed_attributes,
    attribute_order,
    canonical_value,
    check_attributes,
    implied_attributes,
)
from hloopt.ir.instruction import REFERENCE_ATTRIBUTES
from hloopt.ir.opcode import Opcode


@pytest.mark.parametrize(
    ("opcode", "name", "text", "printed"),  # the printed form is XLA's
    [
        (Opcode.ADD, "origin", '{ ( {"v"} , {"b" { 0 , 1 }}, {}) }', '{({"v"}, {"b" {0,1}}, {})}'),
        (Opcode.ADD, "origin", "{ }", "{()}"),
        (Opcode.ADD, "origin", "{[synthetic_call]}", "{[synthetic_call]}"),
        (Opcode.ADD, "statistics", "{visualizing_index=1, a-1=1e-10,b=123456789}",
         "{visualizing_index=1,a-1=1e-10,b=1.23457e+08}"),
        (Opcode.ADD, "statistics", "{}", None),
        (Opcode.ADD, "frontend_attributes", "{}", None),
        (Opcode.ADD, "backend_config", '"{\\"a\\":1}"', '{"a":1}'),
        (Opcode.ADD, "backend_config", "{a://b}", "{a://b}"),
        (Opcode.ADD, "backend_config", '"a\\nb"', '"a\\nb"'),
        (Opcode.ADD, "backend_config", '""', None),
        (Opcode.ADD, "backend_config", '{"wait_on_operation_queues":[],"a":{}}', '{"a":{}}'),
        (Opcode.ADD, "metadata", "{source_line=3}", None),
        (Opcode.ADD, "metadata", '{source_line=3,op_name="a"}', '{op_name="a" source_line=3}'),
        (Opcode.TANH, "result_accuracy", "{mode=HIGHEST}", "{mode=highest}"),
        (Opcode.TANH, "result_accuracy", "{mode=default}", None),
        (Opcode.TANH, "result_accuracy", "{ tolerance={ rtol=0.1, ulps=3}}",
         "{tolerance={atol=0,rtol=0.1,ulps=3}}"),
        (Opcode.RESHAPE, "inferred_dimension", "-1", None),
        (Opcode.SLICE, "slice", "{[0:4:1], [0:2]}", "{[0:4], [0:2]}"),
        (Opcode.SLICE, "slice", "{[0:4:2], [0:2]}", "{[0:4:2], [0:2:1]}"),
        (Opcode.BATCH_NORM_GRAD, "epsilon", "0.00010000001", "0.0001"),
        (Opcode.DOT, "operand_precision", "{HIGH, default}", "{high,default}"),
        (Opcode.DOT, "operand_precision", "{default,default}", None),
        (Opcode.DOT, "algorithm", "DOT_F32_F32_F32", "dot_f32_f32_f32"),
        (Opcode.DOT, "algorithm", "unset", None),
        (Opcode.RNG_BIT_GENERATOR, "algorithm", "RNG_DEFAULT", "rng_default"),
        (Opcode.CUSTOM_CALL, "window", "{size=0x1 rhs_reversal=2x1}",
         "{size=0x1 rhs_reversal=0x1}"),
        (Opcode.CUSTOM_CALL, "window", "{size=3 pad=0_0 stride=2}", "{size=3 stride=2}"),
        (Opcode.CUSTOM_CALL, "window", "{}", "{}"),
        (Opcode.CUSTOM_CALL, "dim_labels", "b?0f?_?0io->b0f", "b?0f_?0io->b0f"),
        (Opcode.CUSTOM_CALL, "literal", "s32[2]{0}  { 1,2 }", "s32[2]{0} {1, 2}"),
        (Opcode.CUSTOM_CALL, "literal", "(s32[1]{0} {4}, pred[2]{0} {1,0})",
         "( s32[1]{0} {4}, pred[2]{0} {1, 0} )"),
        (Opcode.CUSTOM_CALL, "operand_layout_constraints", "{f32[4]}", "{f32[4]{0}}"),
        (Opcode.CUSTOM_CALL, "output_to_operand_aliasing", "{ { }:(0 , { } ) }", "{{}: (0, {})}"),
        (Opcode.CUSTOM_CALL, "schedule", "schedule_latest", "SCHEDULE_LATEST"),
        (Opcode.CUSTOM_CALL, "api_version", "API_VERSION_ORIGINAL", None),
        (Opcode.CONVOLUTION, "sparsity_config",
         "{ rhs={sparsity=2x4 dimension=1 stride=1} lhs={dimension=0  sparsity=1x4 stride=2}}",
         "{lhs={sparsity=1x4 dimension=0 stride=2} rhs={sparsity=2x4 dimension=1 stride=1}}"),
        (Opcode.CONVOLUTION, "feature_group_count", "1", None),
        (Opcode.PAD, "padding", "0_0_0", "0_0"),
        (Opcode.PAD, "padding", "0_0x1_1_1", "0_0_0x1_1_1"),
        (Opcode.SORT, "is_stable", "false", None),
        (Opcode.DOMAIN, "domain",
         '{exit={{replicated},{maximal device=1}}, kind="sharding", entry={ replicated }}',
         '{kind="sharding", entry={replicated}, exit={{replicated}, {maximal device=1}}}'),
        (Opcode.ALL_REDUCE, "mode", "cross_replica", None),
        (Opcode.COLLECTIVE_PERMUTE, "source_target_pairs", "{ { 0 , 1} }", "{{0,1}}"),
        (Opcode.ASYNC_START, "async_execution_thread", '"main"', None),
    ],
)  # fmt: skip
def test_values_are_written_as_xla_prints_them(
    opcode: Opcode, name: str, text: str, printed: str | None
) -> None:
    assert canonical_value(opcode, name, text) == printed
    if printed is not None:
        assert canonical_value(opcode, name, printed) == printed


def test_attributes_come_in_printing_order() -> None:
    names = ["metadata", "to_apply", "sharding", "dimensions", "unheard-of", "channel_id"]
    assert attribute_order(Opcode.REDUCE_SCATTER, names) == [
        *("channel_id", "dimensions", "to_apply", "sharding", "metadata", "unheard-of")
    ]
    tail = ["backend_config", "metadata", "origin", "result_accuracy", "statistics"]
    assert attribute_order(Opcode.TANH, tail) == tail[::-1]


def test_every_opcode_has_the_attributes_of_every_instruction() -> None:
    for opcode in Opcode:
        allowed = allowed_attributes(opcode)
        assert {"sharding", "metadata", "control-predecessors"} <= allowed.keys()
        for name, text in implied_attributes(opcode).items():
            assert canonical_value(opcode, name, text) == text


def test_what_is_kept_as_a_reference_is_one_in_the_table() -> None:
    attributes = [a for opcode in Opcode for a in allowed_attributes(opcode).values()]
    assert {a.name for a in attributes if a.is_reference} == REFERENCE_ATTRIBUTES
    assert REFERENCE_ATTRIBUTES.isdisjoint(a.name for a in attributes if not a.is_reference)


def test_references_count_as_present() -> None:
    check_attributes(Opcode.REDUCE, {"dimensions": "{0}"}, ["to_apply"])
    check_attributes(Opcode.CONDITIONAL, {}, iter(["branch_computations"]))
    check_attributes(Opcode.CONDITIONAL, {}, ["true_computation", "false_computation"])


@pytest.mark.parametrize(
    ("opcode", "attributes", "references", "message", "hint"),
    [
        (Opcode.SLICE, {}, [], "slice needs the attribute 'slice'", None),
        (Opcode.REDUCE, {"dimensions": "{0}"}, [], "reduce needs the attribute 'to_apply'", None),
        (Opcode.CONDITIONAL, {}, ["true_computation"], "needs the attribute", None),
        (Opcode.ADD, {"dimension": "{0}"}, [], "add has no attribute 'dimension'", None),
        (Opcode.TRANSPOSE, {"dimension": "{0}"}, [], "no attribute", "'dimensions'"),
        (Opcode.ADD, {}, ["to_apply"], "add has no attribute 'to_apply'", None),
        (Opcode.COMPARE, {"direction": "lt"}, [], "'direction': expected EQ, NE", None),
        (Opcode.CONCATENATE, {"dimensions": "{0,1}"}, [], "one dimension", None),
        (Opcode.ADD, {"sharding": "{replicate}"}, [], "unknown sharding", "'replicated'"),
        (Opcode.ADD, {"sharding": "{devices=[0]0}"}, [], "a tile dimension of 0", None),
        (Opcode.ADD, {"sharding": "{devices=[2,2]0,1}"}, [], "4 tiles and 2 devices", None),
        (Opcode.ADD, {"sharding": "{{replicated}"}, [], "sharding", None),
        (Opcode.ADD, {"metadata": "{op_nam=3}"}, [], "no 'op_nam'", "'op_name'"),
        (Opcode.ADD, {"backend_config": "{"}, [], "a string", None),
        (Opcode.CUSTOM_CALL, {"literal": "(s32[] 1, "}, [], "a shape and a literal", None),
        (Opcode.CUSTOM_CALL, {"literal": "s32[] 1, s32[] 2"}, [], "a shape and a literal", None),
        (Opcode.CUSTOM_CALL, {"literal": " "}, [], "a shape and a literal", None),
        (Opcode.CUSTOM_CALL, {"literal": ","}, [], "expected a shape, found ','", None),
    ],
)
def test_a_wrong_attribute_is_named(
    opcode: Opcode,
    attributes: dict[str, str],
    references: list[str],
    message: str,
    hint: str | None,
) -> None:
    with pytest.raises(HloSyntaxError, match=message) as caught:
        check_attributes(opcode, attributes, references)
    if hint:
        assert hint in (caught.value.help or "")
