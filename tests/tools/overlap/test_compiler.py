"""The compiler that judges steps: what it is asked, and what it may answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import overlap_lib.compiler
from hloopt.ir.attributes.backend_config import is_sync
from hloopt.text import parse_module
from overlap_lib.compiler import Failed, XlaGpu

PROGRAM = """
HloModule m, is_scheduled=true

ENTRY main {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  ROOT e = f32[8] exponential(n)
}
"""
_ADD = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

"""
RUN = SimpleNamespace(before=PROGRAM, after=PROGRAM)


class Scripts:
    """The two scripts beside the shared data, in one."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.steps: dict[str, list[Any]] = {"latency-hiding-scheduler": [RUN]}
        self.kept = True

    def compile(self, text: str, **how: Any) -> SimpleNamespace:
        self.asked.append({"text": text, **how})
        return SimpleNamespace(
            step=lambda name: self.steps.get(name, []),
            lhs={"after": [{"computation": "main", "total_cycles": 7.0}]},
            memory={"total_bytes": 99},
            error="refused",
            log="",
        )

    def unscheduled(self, text: str) -> str:
        return text.replace(", is_scheduled=true", "")

    def force(self, text: str, wanted: dict[str, list[str]]) -> str:
        assert wanted["main"] == ["p", "n", "e"]
        assert "is_scheduled" not in text
        return text

    def orders(self, text: str) -> dict[str, list[str]]:
        return {"main": ["p", "n", "e"] if self.kept else ["n", "p", "e"]}


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    found = Scripts()
    monkeypatch.setattr(overlap_lib.compiler, "oracle_script", lambda folder, name: found)
    return found


XLA = XlaGpu(Path("shared"), "python", 8)


def test_behind_the_combiners_all_but_these_runs(scripts: Scripts) -> None:
    step = XLA.finished(PROGRAM).step
    assert (step.total, step.allocated) == (7.0, 99)
    XLA.combined(PROGRAM, ["--flag"])
    behind, whole = (asked["only"] for asked in scripts.asked)
    combiners = {f"gpu-{kind}-combiner" for kind in ("all-gather", "all-reduce", "reduce-scatter")}
    assert {*whole} - {*behind} == combiners
    assert "copy-insertion" in behind
    assert scripts.asked[1]["flags"] == ["--flag"]


def test_an_order_is_kept(scripts: Scripts) -> None:
    module = parse_module(PROGRAM)
    assert XLA.forced(module).total == 7.0
    assert XLA.forced(module, is_last=True).total == 7.0
    whole, last = (asked["only"] for asked in scripts.asked)
    assert last == ("latency-hiding-scheduler",)
    assert "rematerialization" in whole
    scripts.kept = False
    with pytest.raises(Failed, match="does not keep the orders of main"):
        XLA.forced(module)


def test_no_collective_comes_to_the_scheduler_marked_synchronous(scripts: Scripts) -> None:
    marked = """all-reduce-start(p), replica_groups={}, to_apply=add,
      backend_config={"collective_backend_config":{"is_sync":true}}"""
    program = PROGRAM.replace("negate(p)", marked).replace("exponential(n)", "all-reduce-done(n)")
    module = parse_module(program.replace("ENTRY", f"{_ADD}ENTRY"))
    XLA.forced(module)
    (asked,) = scripts.asked
    assert '"is_sync":false' in asked["text"]
    assert '"is_sync":true' not in asked["text"]
    assert is_sync(module["n"])


def test_what_xla_refuses(scripts: Scripts) -> None:
    scripts.steps.clear()
    for ask in (XLA.finished, XLA.combined, XLA.before_combiners):
        with pytest.raises(Failed, match="XLA: refused"):
            ask(PROGRAM)


def test_a_program_is_taken_where_it_comes_to_the_combiners(scripts: Scripts) -> None:
    scripts.steps["gpu-all-gather-combiner"] = [SimpleNamespace(before="HloModule here")]
    assert XLA.before_combiners(PROGRAM) == "HloModule here"
    assert "only" not in scripts.asked[0]
