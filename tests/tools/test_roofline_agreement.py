"""The comparison of the roofline with the speed of light, and of steps before and after fusion."""

from __future__ import annotations

from pathlib import Path

import pytest

import roofline_agreement
from hloopt.targets import load_target
from hloopt.text import parse_module
from roofline_agreement import Kernel, Step, kernel_table, kernels, recorded_steps, step_table

RECORDED = ("moe_all_to_all_1x8", "ring_all_gather_matmul_1x8")


@pytest.fixture
def recorded(shared: Path, tmp_path: Path) -> Path:
    """A folder of `oracle/gpu` with two small steps."""
    folder = tmp_path / "oracle" / "gpu"
    folder.mkdir(parents=True)
    for name in RECORDED:
        (folder / name).symlink_to(shared / "oracle" / "gpu" / name)
    return folder


def test_errors_are_relative_to_the_speed_of_light() -> None:
    found = [Kernel("matrix product", 8.0, 10.0), Kernel("loop or reduction", 0.5, 0.5)]
    assert [kernel.error for kernel in found] == pytest.approx([0.2, 0.0])
    rows = kernel_table(found).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["1", "1", "1", "2"]


def test_a_step_has_the_ratio_of_both_times() -> None:
    found = Step("s", 130.0, 100.0, 50.0, 40.0)
    assert found.error == pytest.approx(0.3)
    assert "| 1.30 | 1.25 |" in step_table([found])


def test_kernels_are_those_that_run_by_themselves() -> None:
    text = """HloModule m
    f { a = f32[1048576] parameter(0) ROOT b = f32[1048576] negate(a) }
    ENTRY e { p = f32[1048576] parameter(0) ROOT l = f32[1048576] fusion(p), kind=kLoop, calls=f }
    """
    (kernel,) = kernels(parse_module(text), load_target("h100_sxm"))
    assert kernel.kind == "loop or reduction"
    assert kernel.error < 0.05


def test_recorded_steps_are_near_their_optimized_texts(recorded: Path) -> None:
    found = list(recorded_steps(recorded))
    assert [step.name for step in found] == list(RECORDED)
    assert all(abs(step.error) < 0.1 for step in found)


def test_a_missed_bar_is_an_exit_code(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--shared", str(recorded.parents[1])]
    assert roofline_agreement.main(arguments) == 0
    assert "2 of 2 steps within 30%" in capsys.readouterr().out
    monkeypatch.setattr(roofline_agreement, "STEP_BAR", 0.001)
    assert roofline_agreement.main(arguments) == 1
