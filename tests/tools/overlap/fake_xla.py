"""A stand-in for XLA:GPU's compiler that finishes programs as overlap-search does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hloopt.ir import Module
from hloopt.passes.overlap.decisions import Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.text import parse_module
from overlap_lib.compiler import Failed, Finished, XlaGpu
from overlap_lib.steps import TARGET, Step

JUDGE = Judge(OverlapOptions(target=TARGET))


@dataclass(frozen=True, slots=True)
class FakeXla(XlaGpu):
    """Programs that it is given have come to the combiners already."""

    refuses: bool = False
    """Whether it refuses whatever XLA has not made."""
    order_needs: int = 0
    """Bytes that it allocates beside for an order it is made to keep."""
    asked: list[str] = field(default_factory=list)

    def before_combiners(self, text: str, flags: Sequence[str] = ()) -> str:
        self.asked.append("pipelined" if flags else "default")
        return text

    def combined(self, text: str, flags: Sequence[str] = ()) -> Finished:
        self.asked.append(f"combined {flags[0].rpartition('=')[2] if flags else 'by default'}")
        return _finished(text)

    def finished(self, text: str) -> Finished:
        if self.refuses:
            raise Failed("XLA: no")
        self.asked.append("finished")
        return _finished(text)

    def forced(self, module: Module, *, is_last: bool = False) -> Step:
        if self.refuses:
            raise Failed("XLA does not keep the orders of main")
        self.asked.append("forced")
        made = _step(JUDGE.judge(Draft(module), module))
        return replace(made, allocated=made.allocated + self.order_needs)


def fake_xla(*, refuses: bool = False, order_needs: int = 0) -> FakeXla:
    return FakeXla(Path("shared"), "python", 8, refuses, order_needs)


def _finished(text: str) -> Finished:
    judged = JUDGE.finish(Draft(parse_module(text)))
    return Finished(_step(judged), judged.module, judged.module)


def _step(judged: Judged) -> Step:
    return Step(
        judged.seconds * 1e6,
        judged.exposed * 1e6,
        judged.smooth_seconds * 1e6,
        judged.allocated + (1 << 20),  # a page has room for some more
    )
