"""The windowed einsum handler beside that of XLA:GPU's compiler, on programs made for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.oracle.comparison import differences, without_leftovers
from tests.passes.collectives.windowed_einsum.programs import (
    adding,
    dequantized,
    exchanged,
    exchanging,
    gathering,
    scattering,
    together,
)

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

_NAME = "windowed-einsum-handler"
_SPLIT = "xla_gpu_experimental_enable_alltoall_windowed_einsum"
Ask = Callable[[str], tuple[str, str]]
PROGRAMS = {
    "shards on 2 devices": gathering(2),
    "shards on 4 devices": gathering(),
    "shards on 8 devices": gathering(8),
    "shards of what is contracted": adding(),
    "shards of what is contracted on 8 devices": adding(8),
    "partial results on 4 devices": scattering(),
    "partial results on 8 devices": scattering(8),
    "an all-gather of the shards": gathering(chained=True),
    "an all-gather of the shards on 8 devices": gathering(8, chained=True),
    "an all-gather with two dots": gathering(
        chained=True,
        r="d2 = f32[2,8,5] dot(ag, rhs), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
        "  ROOT r = (f32[2,8,5], f32[2,8,5], f32[2,8,5]) tuple(out, d, d2)",
    ),
    "an all-gather that something else reads": gathering(
        chained=True,
        r="n = f32[2,8,3] negate(ag)\n"
        "  ROOT r = (f32[2,8,5], f32[2,8,5], f32[2,8,3]) tuple(out, d, n)",
    ),
    "narrow operands": gathering(narrow="multiply"),
    "narrow operands, divided": gathering(narrow="divide"),
    "narrow operands and an all-gather": gathering(narrow="multiply", chained=True),
    "narrow operands of partial results": scattering(narrow="multiply"),
    "narrow operands that are moved": gathering(
        narrow="multiply",
        lhs="m = f32[2,2,3] multiply(lhs.c, lhs.b)\n"
        "  lhs.t = f32[2,2,3] transpose(m), dimensions={1,0,2}\n"
        "  lhs = f32[2,2,3] copy(lhs.t)",
    ),
    "narrow operands of which the loop slices one": adding(narrow="multiply"),
    "one narrow operand": dequantized(gathering(), "multiply", "lhs"),
    "narrow operands of f8e5m2": dequantized(gathering(), "multiply", types="f8e5m2"),
    "loops of both kinds": together(gathering(), scattering(), gathering()),
    "loops with sums": together(adding(), scattering(), adding()),
    "loops that collect and take narrow operands": together(
        gathering(chained=True), gathering(narrow="multiply"), scattering(narrow="multiply")
    ),
    "operands of bf16": dequantized(gathering(), "multiply", types="bf16"),
    "an exchanged operand": exchanged(),
    "an exchanged operand, groups of 8 devices": exchanged(groups="{0,1,2,3},{4,5,6,7}", devices=8),
    "an exchanged operand, transposed": exchanged(
        moves="t = f32[1,4,8,3] transpose(e), dimensions={0,1,3,2}\n  c = f32[1,4,8,3] copy(t)",
        arg="c",
        dims="lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
        "rhs_contracting_dims={1}",
    ),
    "an exchanged operand, reshaped": exchanged(
        x="f32[4,3,8]", dimension=0, moves="r = f32[1,4,3,8] reshape(e)", arg="r"
    ),
    "an exchanged batch": exchanged(
        x="f32[4,3,8]",
        w="f32[4,8,5]",
        out="f32[4,3,5]",
        dimension=0,
        dims="lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
        "rhs_contracting_dims={1}",
    ),
    "an exchanged operand that cannot be cut": exchanged(x="f32[1,4,3,6]", w="f32[1,6,5]"),
    "an exchanged result": exchanging(),
    "an exchanged result, transposed": exchanging(
        moves="t = f32[1,4,5,3] transpose(d), dimensions={0,1,3,2}", arg="t", shape="f32[1,4,5,3]"
    ),
    "an exchanged result, reshaped": exchanging(
        moves="r = f32[4,3,5] reshape(d)", arg="r", shape="f32[4,3,5]", dimension=0
    ),
}

DIFFERENT = {
    "XLA takes the number of the trip for its counter, which grows by 2": gathering(
        sum0="sum0 = u32[] add(i, id)"
    ),
    "XLA collects 2 of 4 shards, and takes them for the whole": gathering(
        chained=True,
        c="two = u32[] constant(2)\n  ROOT c = pred[] compare(i, two), direction=LT",
    ),
    "XLA collects the second shard of each trip, and takes it for the whole": adding(chained=True),
    "XLA forgets what the sum begins with": adding(
        t="s = f32[2,3,5] parameter(2)\n"
        "  t = (f32[2,3,2], f32[8,5], f32[2,3,5], f32[2,3,5], u32[]) tuple(lhs, rhs, s, b, i)"
    ),
    "XLA adds all dots up, of which another element takes one each": scattering().replace(
        "_rs", "_ag"
    ),
    "XLA splits the dimension that is exchanged": exchanged(
        x="f32[1,2,3,16]", w="f32[1,16,5]", out="f32[1,2,3,5]", dimension=3
    ),
}


@pytest.fixture(scope="module")
def ask(compiler: Any) -> Ask:
    """A program before the pass of XLA:GPU, and after it."""

    def run(text: str) -> tuple[str, str]:
        (result,) = compiler.compile_many(
            [text], target="h100_sxm", only=[_NAME], passes=f"^{_NAME}$", until="memory", lhs=False,
            flags=[f"--{_SPLIT}=true"],
        )  # fmt: skip
        step = result.steps[0]
        return step.before, step.after or step.before

    return run


def ours_of(text: str) -> Module:
    module = parse_module(text)
    create_pass(_NAME, {_SPLIT: True, "assume_equal_scales": True}).run(module, PassContext())
    return module


def unlike(ours: Module, theirs: Module) -> list[str]:
    """The differences but for channels, which both give out in orders of their own, for values
    made twice, and for fields of backend_config but the queue of dots."""
    for module in (ours, theirs):
        for instruction in module.instructions():
            if "channel_id" in instruction.attributes:
                instruction.set_attribute("channel_id", "1")
            config = instruction.attributes.get("backend_config")
            queue = re.search(r"operation_queue_id\W*(\d+)", config or "")
            if config is not None:
                is_dot = instruction.opcode == "dot"
                kept = f'"{queue[1]}"' if queue is not None and is_dot else None
                instruction.set_attribute("backend_config", kept)
        without_leftovers(module)
        create_pass("cse").run(module, PassContext())
    return differences(ours, theirs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_that_of_xla(name: str, ask: Ask) -> None:
    before, after = ask(PROGRAMS[name])
    assert unlike(ours_of(before), parse_module(after)) == []


@pytest.mark.parametrize("reason", DIFFERENT)
def test_where_ours_differs_xla_computes_something_else(reason: str, ask: Ask) -> None:
    before, after = ask(DIFFERENT[reason])
    reference = Reference(parse_module(before), RunSettings())
    assert reference.compare(ours_of(before), "finite") is None
    assert reference.compare(parse_module(after), "finite") is not None
