"""Translation validation finds passes that change what a module computes."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from hloopt.diagnostics import PassFailure, Source
from hloopt.equivalence import RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.pipeline import PassStep, Pipeline
from hloopt.pass_framework.runner import PipelineRunner, restore
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module, print_module


class Miscompile(NamedTuple):
    """A module, and what a broken pass makes of it."""

    name: str
    body: str
    """The entry computation; `p`, `q`: f32[4,4], `i`: s32[4], `n`: s32[] are its parameters."""
    right: str
    wrong: str
    header: str = "HloModule m"


COMPUTATIONS = """
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
largest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
ascending { a = f32[] parameter(0) b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
twice { a = f32[4,4] parameter(0) ROOT s = f32[4,4] add(a, a) }
minus { a = f32[4,4] parameter(0) ROOT s = f32[4,4] negate(a) }
body { t = (s32[], f32[4,4]) parameter(0) k = s32[] get-tuple-element(t), index=0
  x = f32[4,4] get-tuple-element(t), index=1 one = s32[] constant(1) l = s32[] add(k, one)
  y = f32[4,4] add(x, x) ROOT r = (s32[], f32[4,4]) tuple(l, y) }
condition { t = (s32[], f32[4,4]) parameter(0) k = s32[] get-tuple-element(t), index=0
  last = s32[] constant(3) ROOT c = pred[] compare(k, last), direction=LT }
"""
TWO = "HloModule m, replica_count=2"
FOUR = "HloModule m, num_partitions=4"
MISCOMPILES = [
    Miscompile(
        "operands swapped", "ROOT r = f32[4,4] subtract(p, q)", "subtract(p, q)", "subtract(q, p)"
    ),
    Miscompile(
        "wrong tuple element",
        "t = (f32[4,4], f32[4,4]) tuple(p, q) ROOT r = f32[4,4] get-tuple-element(t), index=0",
        "index=0",
        "index=1",
    ),
    Miscompile(
        "another constant",
        "c = f32[] constant(2) b = f32[4,4] broadcast(c), dimensions={}"
        " ROOT r = f32[4,4] multiply(p, b)",
        "constant(2)",
        "constant(2.01)",
    ),
    Miscompile(
        "a lost negation",
        "m = f32[4,4] negate(p) ROOT r = f32[4,4] add(m, q)",
        "add(m,",
        "add(p,",
    ),
    Miscompile(
        "compare the other way",
        "c = pred[4,4] compare(p, q), direction=LT ROOT r = f32[4,4] select(c, p, q)",
        "direction=LT",
        "direction=GT",
    ),
    Miscompile(
        "less for less or equal",
        "ROOT c = pred[4,4] compare(p, p), direction=LE",
        "direction=LE",
        "direction=LT",
    ),
    Miscompile(
        "slice from another place",
        "ROOT r = f32[2,4] slice(p), slice={[0:2], [0:4]}",
        "[0:2]",
        "[1:3]",
    ),
    Miscompile(
        "a lost transpose",
        "ROOT r = f32[4,4] transpose(p), dimensions={1,0}",
        "dimensions={1,0}",
        "dimensions={0,1}",
    ),
    Miscompile(
        "reduce over another dimension",
        "z = f32[] constant(0) ROOT r = f32[4] reduce(p, z), dimensions={0}, to_apply=sum",
        "dimensions={0}",
        "dimensions={1}",
    ),
    Miscompile(
        "reduce from another start",
        "z = f32[] constant(0) ROOT r = f32[4] reduce(p, z), dimensions={0}, to_apply=sum",
        "constant(0)",
        "constant(1)",
    ),
    Miscompile(
        "another reduction",
        "z = f32[] constant(0) ROOT r = f32[4] reduce(p, z), dimensions={0}, to_apply=sum",
        "to_apply=sum",
        "to_apply=largest",
    ),
    Miscompile(
        "one iteration too few",
        "z = s32[] constant(0) t = (s32[], f32[4,4]) tuple(z, p)"
        " w = (s32[], f32[4,4]) while(t), condition=condition, body=body"
        " ROOT r = f32[4,4] get-tuple-element(w), index=1",
        "last = s32[] constant(3)",
        "last = s32[] constant(2)",
    ),
    Miscompile(
        "branches swapped",
        "z = s32[] constant(1) c = pred[] compare(n, z), direction=LT ROOT r = f32[4,4]"
        " conditional(c, p, p), true_computation=twice, false_computation=minus",
        "true_computation=twice, false_computation=minus",
        "true_computation=minus, false_computation=twice",
    ),
    Miscompile(
        "another function called",
        "ROOT r = f32[4,4] call(p), to_apply=twice",
        "to_apply=twice",
        "to_apply=minus",
    ),
    Miscompile(
        "broadcast along the other dimension",
        "z = f32[] constant(0) v = f32[4] reduce(p, z), dimensions={0}, to_apply=sum"
        " ROOT r = f32[4,4] broadcast(v), dimensions={1}",
        "broadcast(v), dimensions={1}",
        "broadcast(v), dimensions={0}",
    ),
    Miscompile(
        "concatenated in another order",
        "ROOT r = f32[8,4] concatenate(p, q), dimensions={0}",
        "concatenate(p, q)",
        "concatenate(q, p)",
    ),
    Miscompile(
        "a lost update",
        "z = s32[] constant(0) u = f32[1,4] slice(q), slice={[0:1], [0:4]}"
        " ROOT r = f32[4,4] dynamic-update-slice(p, u, n, z)",
        "dynamic-update-slice(p, u, n, z)",
        "copy(p)",
    ),
    Miscompile(
        "offsets swapped",
        "z = s32[] constant(0) ROOT r = f32[2,2] dynamic-slice(p, n, z), dynamic_slice_sizes={2,2}",
        "(p, n, z)",
        "(p, z, n)",
    ),
    Miscompile(
        "padded on the other side",
        "z = f32[] constant(0) ROOT r = f32[5,4] pad(p, z), padding=1_0x0_0",
        "padding=1_0x0_0",
        "padding=0_1x0_0",
    ),
    Miscompile(
        "rounded in between",
        "ROOT r = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "ROOT r = f32[4,4] dot(p, q)",
        "l = bf16[4,4] convert(p) ROOT r = f32[4,4] dot(l, q)",
    ),
    Miscompile(
        "contracted over another dimension",
        "ROOT r = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "rhs_contracting_dims={0}",
        "rhs_contracting_dims={1}",
    ),
    Miscompile(
        "sorted along another dimension",
        "ROOT r = f32[4,4] sort(p), dimensions={1}, to_apply=ascending",
        "dimensions={1}",
        "dimensions={0}",
    ),
    Miscompile(
        "counted along another dimension",
        "ROOT r = s32[4,4] iota(), iota_dimension=0",
        "iota_dimension=0",
        "iota_dimension=1",
    ),
    Miscompile(
        "reversed along another dimension",
        "ROOT r = f32[4,4] reverse(p), dimensions={0}",
        "dimensions={0}",
        "dimensions={1}",
    ),
    Miscompile(
        "an integer off by one",
        "o = s32[] constant(1) b = s32[4] broadcast(o), dimensions={} ROOT r = s32[4] add(i, b)",
        "constant(1)",
        "constant(0)",
    ),
    Miscompile(
        "other replica groups",
        "ROOT r = f32[4,4] all-reduce(p), replica_groups={{0,1}}, to_apply=sum",
        "replica_groups={{0,1}}",
        "replica_groups={{0},{1}}",
        TWO,
    ),
    Miscompile(
        "sent the other way",
        "ROOT r = f32[4,4] collective-permute(p), channel_id=1,"
        " source_target_pairs={{0,1},{1,2},{2,3},{3,0}}",
        "{{0,1},{1,2},{2,3},{3,0}}",
        "{{1,0},{2,1},{3,2},{0,3}}",
        FOUR,
    ),
    Miscompile(
        "gathered in another order",
        "ROOT r = f32[16,4] all-gather(p), channel_id=1, replica_groups={{0,1,2,3}},"
        " dimensions={0}, use_global_device_ids=true",
        "{{0,1,2,3}}",
        "{{0,1,3,2}}",
        FOUR,
    ),
    Miscompile(
        "one device's own number",
        "d = u32[] partition-id() ROOT r = f32[] convert(d)",
        "partition-id()",
        "constant(0)",
        FOUR,
    ),
]


def text_of(miscompile: Miscompile) -> str:
    return (
        f"{miscompile.header}\n{COMPUTATIONS}\nENTRY e {{ p = f32[4,4] parameter(0)"
        f" q = f32[4,4] parameter(1) i = s32[4] parameter(2) n = s32[] parameter(3)"
        f" {miscompile.body} }}\n"
    )


class Rewriting(ModulePass):
    """Makes another module of a module."""

    name = "rewriting"

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def run(self, module: Module, context: PassContext) -> bool:
        restore(module, self.text)
        return True


def rewrite(module: Module, text: str, *, each: bool = True) -> None:
    validator = Validator(RunSettings(), each=each)
    step = PassStep(made=Rewriting(text))
    PipelineRunner(validator=validator).run(Pipeline(name="p", steps=(step,)), module)


def miscompiled(miscompile: Miscompile) -> str:
    before, found, after = text_of(miscompile).rpartition(miscompile.right)
    assert found
    return before + miscompile.wrong + after


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("miscompile", MISCOMPILES, ids=lambda m: m.name)
def test_a_miscompile_is_found(miscompile: Miscompile, each: bool) -> None:
    module = parse_module(text_of(miscompile))
    with pytest.raises(PassFailure, match="what the module computes") as failure:
        rewrite(module, miscompiled(miscompile), each=each)
    assert failure.value.code == "HLO702"
    if each:
        assert "pass 'rewriting' failed" in failure.value.message
        assert print_module(module) == print_module(parse_module(text_of(miscompile))), (
            "not restored"
        )


@pytest.mark.parametrize("miscompile", MISCOMPILES, ids=lambda m: m.name)
def test_a_module_is_what_it_was(miscompile: Miscompile) -> None:
    module = parse_module(text_of(miscompile))
    rewrite(module, print_module(module))


def test_another_order_of_a_sum_is_no_difference() -> None:
    text = (
        "HloModule m ENTRY e { p = f32[9] parameter(0) q = f32[9] parameter(1)"
        " r = f32[9] parameter(2) a = f32[9] add(p, q) ROOT s = f32[9] add(a, r) }"
    )
    other = text.replace("add(p, q)", "add(q, r)").replace("add(a, r)", "add(p, a)")
    rewrite(parse_module(text), other)


def test_the_message_names_output_index_and_values() -> None:
    text = (
        "HloModule m ENTRY e { p = s32[2,2] parameter(0)"
        " z = s32[2,2] constant({{0,0},{0,0}}) ROOT t = (s32[2,2], s32[2,2]) tuple(p, z) }"
    )
    with pytest.raises(PassFailure) as failure:
        rewrite(parse_module(text), text.replace("{0,0}}", "{7,0}}"))
    assert "output{1}[1,0] was 0, it is 7; 1 of 4 elements differ (seed 0)" in str(failure.value)


def test_another_result_shape_is_a_miscompile() -> None:
    text = "HloModule m ENTRY e { ROOT p = s32[2] parameter(0) }"
    other = "HloModule m ENTRY e { p = s32[2] parameter(0) ROOT r = s32[1,2] reshape(p) }"
    with pytest.raises(PassFailure, match=r"output was s32\[2\]"):
        rewrite(parse_module(text), other)


def test_what_cannot_be_run_cannot_be_validated() -> None:
    text = (
        "HloModule m ENTRY e { s = u64[2] parameter(0) "
        "ROOT i = (u64[2]{0}, f32[2]{0}) rng-bit-generator(s), algorithm=rng_default }"
    )
    with pytest.raises(RunError, match="cannot validate"):
        rewrite(parse_module(text), text)


def test_what_a_text_computed_is_known_the_next_time() -> None:
    source = Source("m", "HloModule m ENTRY e { ROOT p = s32[2] parameter(0) }")
    other = Source("m", source.text.replace("s32", "u32"))
    validator = Validator(RunSettings(), each=False)
    references = []
    for one in (source, source, other):
        validator.start(one)
        validator.check(parse_module(one), "bits")
        assert validator.found.comparisons == 1
        references.append(validator._reference)
    assert references[0] is references[1]
    assert references[1] is not references[2]
