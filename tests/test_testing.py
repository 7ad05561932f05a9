"""Assertions for tests in Python: a cookbook of checks on modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED

from hloopt import parse_module
from hloopt.diagnostics import HloError
from hloopt.testing import (
    assert_collectives,
    assert_fits,
    assert_matches_golden,
    assert_same_program,
    expect,
    module_of,
)


class Compiled:
    """What JAX gives: something with `as_text()`."""

    def __init__(self, text: str) -> None:
        self._text = text

    def as_text(self) -> str:
        return self._text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(STEP, encoding="utf-8")
    return path


def test_programs_are_modules_texts_paths_and_what_jax_compiled(file: Path) -> None:
    module = parse_module(STEP)
    assert module_of(module) is module
    for program in (STEP, file, str(file), Compiled(STEP)):
        assert module_of(program).name == "step"
    with pytest.raises(HloError, match="No such file"):
        module_of("none.hlo")
    with pytest.raises(HloError):
        module_of("HloModule m\nENTRY e { ROOT p = f32[] paramter(0) }")
    with pytest.raises(HloError):
        module_of(STEP.replace("%d = f32[8,8]", "%d = f32[8,9]"))


def test_exactly_these_collectives() -> None:
    assert_collectives(STEP, all_gather=1, all_reduce=2)
    assert_collectives(STEP, all_gather=1, others=None)
    with pytest.raises(AssertionError, match=r"(?s)kind=all-reduce\).count == 0.*it is 2.*%whole"):
        assert_collectives(STEP, all_gather=1)
    with pytest.raises(TypeError, match="all-sum is not a collective"):
        assert_collectives(STEP, all_sum=1)
    with pytest.raises(AssertionError, match="no verdict"):
        assert_collectives(UNPARTITIONED)


def test_expectations() -> None:
    expect(STEP, "dots.count == 1", "loops.trips == 5")
    with pytest.raises(AssertionError) as failure:
        expect(STEP, "dots.count == 1", "dots(lhs=f32).count == 0", "memory.peak <= 1B")
    message = str(failure.value)
    assert message.startswith("step is not as expected\n")
    assert "dots(lhs=f32).count == 0" in message
    assert "passed" not in message
    with pytest.raises(HloError, match="unknown figure of dots 'cout'"):
        expect(STEP, "dots.cout == 0")


def test_times_need_a_target() -> None:
    with pytest.raises(AssertionError, match="Name the hardware"):
        expect(STEP, "schedule.exposed <= 5%")
    expect(STEP, "schedule.makespan > 0", target="h100_sxm", max_guessed=1.0)


LAYOUT = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[256]{0} parameter(0)
  ROOT n = f32[256]{0} negate(p)
}
"""


def test_memory_that_is_there() -> None:
    assert_fits(LAYOUT, target="h100_sxm")
    assert_fits(LAYOUT, limit="2KiB")
    with pytest.raises(AssertionError, match="needed"):
        assert_fits(LAYOUT, limit="2047B")
    for given in ({}, {"target": "h100_sxm", "limit": "1KiB"}):
        with pytest.raises(TypeError, match="either a target or a limit"):
            assert_fits(LAYOUT, **given)


def test_the_same_program_whatever_its_names() -> None:
    assert_same_program(STEP, STEP.replace("%whole", "%all").replace("/src/", "/home/"))
    on_host = LAYOUT.replace("ROOT n = f32[256]{0}", "ROOT n = f32[256]{0:S(5)}")
    with pytest.raises(AssertionError, match="they differ in layout"):
        assert_same_program(LAYOUT, on_host)
    with pytest.raises(AssertionError, match="see `hloopt diff`"):
        assert_same_program(LAYOUT, LAYOUT.replace("negate", "cosine"))
    assert_same_program(LAYOUT, on_host, without=["layout"])


def test_constants_that_the_text_lacks_are_no_verdict() -> None:
    text = "HloModule m\nENTRY e { ROOT c = f32[2048] constant({...}) }\n"
    with pytest.raises(AssertionError, match="no verdict: 1 constant without values"):
        assert_same_program(text, text)
    assert_same_program(text, text, without=["constants"])


def test_a_golden_file(tmp_path: Path) -> None:
    golden = tmp_path / "golden.hlo"
    with pytest.raises(AssertionError, match="update=True"):
        assert_matches_golden(LAYOUT, golden)
    assert_matches_golden(LAYOUT, golden, update=True)
    assert_matches_golden(LAYOUT, golden)
    assert_matches_golden(Compiled(LAYOUT), str(golden))
    with pytest.raises(AssertionError, match=r"(?s)-.*negate.*\+.*cosine"):
        assert_matches_golden(LAYOUT.replace("negate", "cosine"), golden)
