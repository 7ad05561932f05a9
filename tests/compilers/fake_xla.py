"""A compiler's child that compiles nothing: it leaves dumps, a log and an answer as XLA does.

So commands are tested where XLA is not installed; tests/oracle/compilers asks the real one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hloopt.compilers import compiling
from hloopt.compilers.child import Ending
from hloopt.compilers.pjrt_api import MEMORY_STATS
from hloopt.proto import decode
from hloopt.text import print_module

MODULE = """HloModule m

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %dead = f32[8]{0} abs(%p)
  ROOT %r = f32[8]{0} negate(%p)
}
"""
H100 = ["--target", "h100_sxm"]
LOG = """\
I1127 19:42:22.685003   1 hlo_pass_pipeline.cc:121] Running HLO pass pipeline on module {0}: tidy
I1127 19:42:22.685004   1 hlo_pass_pipeline.cc:181]   HLO pass dce
I1127 19:42:22.685005   1 hlo_pass_pipeline.cc:176] HLO pass: dce time: 3 ms (3000 us) (x)
I1127 19:42:22.685006   1 hlo_pass_pipeline.cc:181]   HLO pass cse
I1127 19:42:22.685007   1 hlo_pass_pipeline.cc:176] HLO pass: cse time: 39 us (39 us) (x)
"""
REPORT = "Memory Space: default (color=0)\nTotal bytes: {} (some)\n"


class FakeXla:
    """The jobs of the child, and how it answers."""

    def __init__(self) -> None:
        self.flags: list[str] = []
        """XLA_FLAGS of each compile."""
        self.answer: dict[str, object] | None = {
            "ok": {"memory": dict.fromkeys(MEMORY_STATS, 1 << 20), "seconds": 1.5}
        }
        self.ending = (0, False)
        self.log = LOG
        self.is_reported = True
        """Whether buffers are assigned, and the report on them is there."""
        self.needed = 4
        """Bytes of all buffers."""
        self.refusals: dict[int, tuple[str, str]] = {}
        """XLA's words and the log of compiles, by number from 1, that leave no dumps."""
        self.dead = ""
        """The name of an instruction that dce removes."""
        self.cse: Callable[[str], str] = str
        """The change that cse makes to the text."""
        self.unknown = {"xla_hloopt_asks_what_is_unknown"}
        """Names of flags that it does not know."""
        self.unread: set[str] = set()
        """Names of flags whose values it cannot read."""
        self.stages: dict[str, Callable[[str], str]] = {}
        """Further dumps by stage, each with what becomes of the program there."""

    def run_child(
        self,
        module: str,
        job: Path,
        answer: Path,
        log: Path,
        environment: Mapping[str, str],
        seconds: float | None,
        is_enough: Callable[[], bool],
    ) -> Ending:
        self.flags.append(environment["XLA_FLAGS"])
        if (refusal := self.refusals.get(len(self.flags))) is not None:
            log.write_text(refusal[1], encoding="utf-8")
            return Ending({"refused": refusal[0]}, 0, False)
        if (died := self._died_of_flags(self.flags[-1].split())) is not None:
            log.write_text(f"F1127 1:1:1.0 1 parse.cc:2] {died}\n", encoding="utf-8")
            return Ending(None, -6, False)
        program = decode((job.parent / "program").read_bytes())
        text = print_module(program)
        name = re.sub(r"[^\w.-]", "_", program.name)
        log.write_text(self.log.format(name), encoding="utf-8")
        without = "".join(
            line for line in text.splitlines(True) if not (self.dead and f"%{self.dead} =" in line)
        )
        dumps = answer.parent / "dumps"
        for stage, of_stage in {
            "before_optimizations": text,
            "0000.tidy.after_pipeline-start.before_dce": text,
            "0001.tidy.after_dce.before_cse": without,
            "0002.tidy.after_cse.before_pipeline-end": self.cse(without),
            "sm_9.0_gpu_after_optimizations": self.cse(without),
            "sm_9.0_gpu_after_optimizations-memory-usage-report": REPORT.format(self.needed),
            **{stage: change(text) for stage, change in self.stages.items()},
        }.items():
            if self.is_reported or not stage.endswith("report"):
                (dumps / f"module_0000.{name}.{stage}.txt").write_text(of_stage, encoding="utf-8")
        if self.answer is not None and "ok" in self.answer:
            for number in range(2):
                (dumps / f"module_0000.{name}.{number}.ptx").write_text(f".version 8.{number}\n")
        is_enough()  # as often as a real child is waited for
        if self.answer is not None:
            answer.write_text(json.dumps(self.answer), encoding="utf-8")
        return Ending(self.answer, *self.ending)

    def _died_of_flags(self, flags: list[str]) -> str | None:
        names = {flag: flag.removeprefix("--").partition("=")[0] for flag in flags}
        if self.unread.intersection(names.values()):
            return "Check failed: tsl::Flags::Parse() Flag parsing failed."
        unknown = [flag for flag, name in names.items() if name in self.unknown]
        return f"Unknown flags in XLA_FLAGS: {' '.join(unknown)}" if unknown else None


def install(monkeypatch: pytest.MonkeyPatch, folder: Path) -> FakeXla:
    """Let commands have this for `--target h100_sxm`, in place of a compiler that is installed."""
    plugin = folder / "fake_plugin.so"
    plugin.touch()
    monkeypatch.setenv("HLOOPT_XLA_PLUGIN", str(plugin))
    fake = FakeXla()
    monkeypatch.setattr(compiling, "run_child", fake.run_child)
    return fake
