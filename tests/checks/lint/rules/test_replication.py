"""What devices compute or hold alike."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Impact, Severity, Verdict


def products(*, devices: int = 4, sharding: str = "{replicated}", layers: int = 1) -> str:
    """A step with a product that is sharded, and some that may not be."""
    dots = "\n".join(
        f"  d{n} = f32[64,64] dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, "
        f'metadata={{op_name="layer{n}/dot"}}'
        for n in range(layers)
    )
    given = ", ".join(f"d{n}" for n in range(layers))
    shapes = ", ".join(["f32[64,64]"] * (layers + 1))
    return f"""HloModule m, num_partitions={devices}

ENTRY e {{
  p = f32[64,64] parameter(0), sharding={sharding}
  q = f32[64,64] parameter(1), sharding={{devices=[{devices},1]<=[{devices}]}}
  id = u32[] partition-id()
{dots}
  own = f32[64,64] dot(q, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT t = ({shapes}) tuple({given}, own)
}}
"""


def test_work_on_replicated_data_is_replicated() -> None:
    (found,) = violations("HLL201", products())
    assert found.location.instruction == "d0"
    assert "50.0% of all flops" in found.message
    assert found.impact.moved == 3 * 64 * 64 * 4


def test_alike_work_is_one_finding() -> None:
    (found,) = violations("HLL201", products(layers=3))
    assert "3 instructions" in found.message
    assert len(found.related) == 2


@pytest.mark.parametrize(
    "text",
    [
        products(sharding="{devices=[4,1]<=[4]}"),
        products(devices=1),
    ],
)
def test_sharded_work_and_one_device_are_fine(text: str) -> None:
    assert found_names("HLL201", text) == []


def test_small_shares_are_left_out() -> None:
    assert found_names("HLL201", products(), share=0.5) == ["d0"]
    assert found_names("HLL201", products(), share=0.51) == []
    assert check("HLL201", UNPARTITIONED).verdict is Verdict.NONE


# -- arguments ------------------------------------------------------------------------------------

SIZE = 1024 * 4
SHARDED = "{devices=[4]<=[4]}"


def arguments(*shardings: str, sizes: tuple[int, ...] = (1024, 1024), devices: int = 4) -> str:
    lines = "\n".join(
        f"  p{n} = f32[{sizes[n]}] parameter({n})" + (f", sharding={each}" if each else "")
        for n, each in enumerate(shardings)
    )
    given = ", ".join(f"p{n}" for n in range(len(shardings)))
    shapes = ", ".join(f"f32[{sizes[n]}]" for n in range(len(shardings)))
    return (
        f"HloModule m, num_partitions={devices}\n\nENTRY e {{\n{lines}\n"
        f"  ROOT t = ({shapes}) tuple({given})\n}}\n"
    )


def test_a_replicated_argument_beside_sharded_ones() -> None:
    (found,) = violations("HLL202", arguments("{replicated}", SHARDED), size=SIZE)
    assert found.location.instruction == "p0"
    assert found.severity is Severity.NOTE
    assert found.impact == Impact(memory=SIZE - SIZE // 4)
    assert found_names("HLL202", arguments("{replicated}", SHARDED), size=SIZE + 1) == []


@pytest.mark.parametrize(
    "text",
    [
        arguments("{replicated}", "{replicated}"),
        arguments("{replicated}", ""),
        arguments("", SHARDED),
        arguments(SHARDED, SHARDED),
        arguments("{replicated}", "{maximal device=0}", devices=1),
        arguments("{replicated}", SHARDED, sizes=(1024, 64)),
    ],
)
def test_nothing_sharded_nothing_replicated_or_a_small_batch_are_fine(text: str) -> None:
    assert found_names("HLL202", text, size=SIZE) == []


def test_a_tuple_of_arguments_is_taken_apart() -> None:
    text = f"""HloModule m, num_partitions=4

ENTRY e {{
  ROOT p = (f32[1024], f32[1024]) parameter(0), sharding={{{{replicated}}, {SHARDED}}}
}}
"""
    (found,) = violations("HLL202", text, size=SIZE)
    assert "argument 0, %p" in found.message
