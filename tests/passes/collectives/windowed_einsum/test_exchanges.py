"""Dots beside an all-to-all: which are split, and what stays."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal
from tests.passes.collectives.windowed_einsum.programs import exchanged, exchanging

from hloopt.ir import Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

_NAME = "windowed-einsum-handler"
_SPLIT = {"xla_gpu_experimental_enable_alltoall_windowed_einsum": True}
_DIMS = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
_NEGATED = "n = f32[1,4,3,5] negate(d)\n  ROOT r = (f32[1,4,3,5], f32[1,4,3,5]) tuple"


@pytest.mark.parametrize(
    "text",
    [
        exchanged(),
        exchanged(groups="{0,1},{2,3}"),
        exchanged(
            moves="t = f32[1,4,8,3] transpose(e), dimensions={0,1,3,2}\n  c = f32[1,4,8,3] copy(t)",
            arg="c",
            dims=_DIMS,
        ),
        exchanged(x="f32[4,3,8]", dimension=0, moves="r = f32[1,4,3,8] reshape(e)", arg="r"),
        exchanged(x="f32[4,3,8]", w="f32[4,8,5]", out="f32[4,3,5]", dimension=0, dims=_DIMS),
        exchanging(),
        exchanging(w="f32[1,8,8]", out="f32[1,4,3,8]", dimension=3),
        exchanging(moves="r = f32[4,3,5] reshape(d)", arg="r", shape="f32[4,3,5]", dimension=0),
        exchanging(
            moves="t = f32[1,4,5,3] transpose(d), dimensions={0,1,3,2}",
            arg="t",
            shape="f32[1,4,5,3]",
        ),
    ],
)
def test_a_dot_is_split_with_the_all_to_all_beside_it(text: str) -> None:
    module = run_equal(_NAME, text, **_SPLIT)
    count = 2 if "{2,3}" in text else 4
    dots = [*module.instructions(Opcode.DOT)]
    assert len(dots) == len([*module.instructions(Opcode.ALL_TO_ALL)]) == count
    queues = [int(backend_config(dot)["operation_queue_id"]) for dot in dots]
    assert sorted(queues) == [*range(min(queues), min(queues) + count)]


def test_nothing_is_split_unless_asked_for_or_at_the_limit() -> None:
    assert reasons_to_stay(_NAME, exchanged()) == []
    module = parse_module(exchanged())
    context = PassContext(applications=Applications(0))
    assert not create_pass(_NAME, _SPLIT).run(module, context)


@pytest.mark.parametrize(
    "text",
    [
        exchanged(
            behind="n = f32[1,4,3,8] negate(e)\n  ROOT r = (f32[1,4,3,5], f32[1,4,3,8]) tuple(d, n)"
        ),
        exchanging(behind=f"{_NEGATED}(e, n)"),
        exchanging(moves="n = f32[1,4,3,5] negate(d)", arg="n"),
    ],
)
def test_what_something_else_reads_is_not_beside_a_dot(text: str) -> None:
    assert reasons_to_stay(_NAME, text, **_SPLIT) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            exchanged().replace("dimensions={1}", "dimensions={1}, constrain_layout=true"),
            "it exchanges a tuple, or its layout is constrained",
        ),
        (
            exchanged().replace("dimensions={1}", "dimensions={1}, control-predecessors={w}"),
            "%e has a dynamic size or control dependencies",
        ),
        (
            exchanged(groups="").replace("{{}}", "{}"),
            "it names no groups of one size, two devices or more",
        ),
        (
            exchanged(
                x="f32[1,4,3,8]",
                w="f32[1,3,8]",
                out="f32[1,4]",
                dims="lhs_batch_dims={0}, lhs_contracting_dims={2,3}, rhs_batch_dims={0}, "
                "rhs_contracting_dims={1,2}",
            ),
            "%d contracts 2 dimensions, not one",
        ),
        (exchanged(x="f32[1,4,3,6]", w="f32[1,6,5]"), "6 cannot be contracted in 4 parts"),
        (
            exchanged(moves="r = f32[1,12,8] reshape(e)", arg="r", dims=_DIMS, out="f32[1,12,5]"),
            "%r or another tears the dimension that it exchanges",
        ),
        (
            exchanged(x="f32[1,2,3,16]", w="f32[1,16,5]", out="f32[1,2,3,5]", dimension=3),
            "it exchanges the dimension that %d contracts",
        ),
    ],
)
def test_what_stays_whole(text: str, reason: str) -> None:
    assert reasons_to_stay(_NAME, text, **_SPLIT) == [f"stays beside %d: {reason}"]
