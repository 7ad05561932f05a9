"""Checks that projects write by hand, with `hloopt.testing`: they fail on a regression."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hloopt.testing import assert_collectives, assert_same_program, expect

pytest.importorskip("jax", reason="needs the extra xla")

pytestmark = pytest.mark.oracle

Programs = Mapping[str, str]


@pytest.fixture(scope="module")
def programs() -> Programs:
    """The texts of cookbook_programs.py, by name."""
    flag = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("cookbook_programs.py"))],
        env={**os.environ, "XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: Programs = json.loads(done.stdout)
    return found


def test_one_all_reduce_and_nothing_else(programs: Programs) -> None:
    """JAX: exactly one all-reduce, no all-gather."""
    assert_collectives(programs["mlp"], all_reduce=1)
    with pytest.raises(AssertionError, match=r"all-gather.*count == 0"):
        assert_collectives(programs["mlp, gathering"], all_reduce=1)


def test_nothing_is_gathered_along_the_sequence(programs: Programs) -> None:
    """MaxText: no all-gather of a float type over dimension 1, the sequence."""
    check = "collectives(kind=all-gather, dtype=float, attr.dimensions={1}).count == 0"
    expect(programs["attention"], check)
    with pytest.raises(AssertionError, match=r"cookbook_programs\.py:"):  # the line of the culprit
        expect(programs["attention, sharded keys"], check)


def test_bytes_of_each_kind_of_collective(programs: Programs) -> None:
    """TransformerEngine: exact bytes per kind; a collective in a loop counts in every trip."""
    expect(
        programs["layers"],
        "collectives(kind=all-reduce).bytes == 6KiB",
        "collectives(kind=all-reduce).static_bytes == 1KiB",
        "collectives.runs == 6",
    )
    with pytest.raises(AssertionError, match=r"1\.0 KiB"):
        expect(programs["mlp"], "collectives(kind=all-reduce).bytes == 6KiB")


def test_counts_of_products_and_loops(programs: Programs) -> None:
    """AXLearn: counts of dots; MaxText: how many bodies of a kind there are."""
    expect(programs["layers"], "dots.count == 2", "dots.runs == 12", "loops.trips == 6")
    expect(programs["blocks"], "computations(name=block*).count == 1")
    with pytest.raises(AssertionError, match=r"dots\.count == 2"):
        expect(programs["f32"], "dots.count == 2")
    with pytest.raises(AssertionError, match=r"computations\(name=block"):
        expect(programs["f32"], "computations(name=block*).count == 1")


def test_the_embedding_is_sharded(programs: Programs) -> None:
    """AXLearn: the sharding of a parameter, under the name that the program has for it."""
    check = "parameters(name=embedding*).sharding ~ devices=.4,1"
    expect(programs["embed"], check)
    with pytest.raises(AssertionError, match="replicated"):
        expect(programs["embed, replicated"], check)
    with pytest.raises(AssertionError, match=r"vacuous|nothing"):  # renamed: the check says so
        expect(programs["embed"], "parameters(name=table*).sharding ~ devices=.4,1")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ("dots(lhs=f32).count == 0", "bf16", "f32"),  # pytorch/xla
        ("dots(lhs=bf16, rhs=bf16).count == 1", "bf16", "f32"),
        ("dots(lhs=f8, rhs=f8).count == 1", "f8", "bf16"),  # MaxText
    ],
)
def test_types_of_products(programs: Programs, check: str, good: str, bad: str) -> None:
    expect(programs[good], check)
    with pytest.raises(AssertionError, match="dots"):
        expect(programs[bad], check)


def test_no_temporaries(programs: Programs) -> None:
    """JAX: a program that needs no temporary memory."""
    expect(programs["add"], "memory.temporaries == 0")
    with pytest.raises(AssertionError, match=r"memory\.temporaries"):
        expect(programs["sums"], "memory.temporaries == 0")


def test_a_program_stays_the_same(programs: Programs) -> None:
    """MaxText: goldens of the first 2,000 lines; here of all, whatever names are."""
    assert_same_program(programs["mlp"], programs["mlp"].replace("jit_mlp", "jit_step"))
    with pytest.raises(AssertionError, match="do not compute the same"):
        assert_same_program(programs["mlp"], programs["mlp, gathering"])
