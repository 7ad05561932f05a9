"""`tools/global_equivalence.py`: programs beside what XLA's partitioner made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import pair

import global_equivalence
from global_equivalence import fits, judged
from hloopt.ir import Module
from hloopt.text import parse_module

DOT = "Dot2DPartitionedNoncontractingAndContracting3.0"
WRAP = "CustomCallWrap.0"


def program(body: str) -> Module:
    return parse_module(f"HloModule m, num_partitions=2\nENTRY e {{ {body} }}")


UNREDUCED = "ROOT p = f32[2] parameter(0), sharding={devices=[1,2]<=[2] last_tile_dims={unreduced}}"


def test_both_sides_of_the_partitioner_are_the_same() -> None:
    assert judged("gathered", *pair("gathered"), 40.0) == ("same", "")


def test_a_difference_is_told_or_explained_by_its_name() -> None:
    before, after = pair("remat")
    wrong = parse_module(str(after).replace(" add(%", " subtract(%", 1))
    verdict, reason = judged("remat", before, wrong, 40.0)
    assert verdict == "different"
    assert reason
    assert judged(DOT, before, wrong, 40.0)[0] == "explained"


def test_what_cannot_run_is_told_or_explained_by_its_name() -> None:
    call = program(
        "p = f32[4]{0} parameter(0) ROOT c = f32[9]{0} custom-call(p), "
        'custom_call_target="_SPMDInternalOp_Wrap", opaque="left=1,right=1"'
    )
    assert judged("other", call, call, 40.0)[0] == "not run"
    assert judged(WRAP, call, call, 40.0)[0] == "explained"


def test_sums_that_are_not_reduced_are_left_out() -> None:
    module = program(UNREDUCED)
    assert judged("unreduced", module, module, 40.0) == ("left out", "")


@pytest.mark.parametrize(
    ("body", "is_fit"),
    [
        ("ROOT p = f32[1024] parameter(0)", True),
        ("ROOT p = f32[4096,4096] parameter(0)", False),
        ("a = f32[] constant(0) ROOT r = f32[2] rng(a, a), distribution=rng_uniform", False),
        ("t = token[] after-all() ROOT i = (f32[2], token[]) infeed(t)", False),
    ],
)
def test_large_values_and_those_that_inputs_do_not_tell_are_left_out(
    body: str, is_fit: bool
) -> None:
    module = program(body)
    assert fits(module) is is_fit
    if not is_fit:
        assert judged("large", module, module, 40.0) == ("left out", "")


@pytest.mark.parametrize("arguments", [["--share", "0/0"], ["--share", "1"], []])
def test_wrong_usage_has_one_message(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert global_equivalence.main(["--shared", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_the_bar_is_met(shared: Path) -> None:
    assert global_equivalence.main(["--shared", str(shared), "--share", "0/4"]) == 0
