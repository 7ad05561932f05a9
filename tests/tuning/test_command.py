"""`hloopt tune` with a compiler that compiles nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.compilers.fake_xla import FakeXla, install

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m, is_scheduled=true, num_partitions=2

%s (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e (p: f32[1024,1024]) -> f32[1024,1024] {
  %p = f32[1024,1024]{1,0} parameter(0)
  %dead = f32[1024,1024]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1}},
    use_global_device_ids=true, to_apply=%s
  ROOT %r = f32[1024,1024]{1,0} negate(%p)
}
"""
SPACE = "xla_a: [true]\nxla_b: [true]\n"
LINE = ["tune", "m.hlo", "--target", "h100_sxm", "--flags", "space.yaml"]


class Flagged(FakeXla):
    """With the flag `xla_a` the step loses its all-reduce."""

    def run_child(self, *arguments):  # type: ignore[no-untyped-def]  # as FakeXla has it
        flags = arguments[4]["XLA_FLAGS"]
        self.cse = without_reduce if "--xla_a=true" in flags else str
        return super().run_child(*arguments)


def without_reduce(text: str) -> str:
    return re.sub(r"  %dead = .*\n", "", text)


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeXla:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE, encoding="utf-8")
    Path("space.yaml").write_text(SPACE, encoding="utf-8")
    fake = install(monkeypatch, tmp_path)
    flagged = Flagged()
    monkeypatch.setattr("hloopt.compilers.compiling.run_child", flagged.run_child)
    del fake
    return flagged


def test_the_flags_of_the_shortest_step(xla: FakeXla, capsys: Capture) -> None:
    assert main(LINE) == 0
    out = capsys.readouterr().out
    assert "XLA_FLAGS='--xla_a=true'" in out
    assert "(default)" in out
    assert "* 4 compiles by fake_plugin.so" in out
    assert main([*LINE, "-j", "2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["front"][0]["flags"] == {"xla_a": "true"}
    assert found["front"][0]["seconds"] < found["default"]["seconds"]
    assert found["complete"] is True
    assert len(found["judged"]) == 4


def test_a_run_goes_on_from_its_journal(xla: FakeXla, capsys: Capture) -> None:
    assert main([*LINE, "--journal", "j.jsonl"]) == 0
    first = capsys.readouterr().out
    count = len(xla.flags)
    assert main([*LINE, "--journal", "j.jsonl"]) == 0
    assert capsys.readouterr().out == first
    assert len(xla.flags) == count == 4


def test_a_budget_ends_it_with_the_best_so_far(
    xla: FakeXla, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    assert main([*LINE, "--budget", "3s"]) == 0
    assert "the budget ran out" in capsys.readouterr().out
    clock = iter(range(0, 500, 5))
    assert main([*LINE, "--budget", "1s"]) == 2
    assert "before the first compile ended" in capsys.readouterr().err


def test_a_program_that_does_not_compile(xla: FakeXla, capsys: Capture) -> None:
    xla.answer, xla.is_reported = {"refused": "INTERNAL: no"}, False
    assert main(LINE) == 3
    assert "XLA refuses the program: no" in capsys.readouterr().err


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--preset", "none"], "no preset 'none'"),
        (["--target", "cpu"], "there are no times of its steps"),
        (["--target", "a100_sxm_80"], "there are no times of its steps"),
        (["--budget", "soon"], "'soon' is no time"),
        (["--flag", "x"], "'x' is no flag of XLA"),
    ],
)
def test_mistakes(more: list[str], message: str, capsys: Capture) -> None:
    assert main([*LINE, *more]) == 2
    assert message in capsys.readouterr().err
