"""The passes of XLA:CPU's compiler around its own copy insertion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oracle_script import oracle_script

_PASS = "copy-insertion"


@dataclass(frozen=True, slots=True)
class Steps:
    """The texts around XLA's copy insertion, and the passes after it that changed something."""

    before: str
    after: str
    later: tuple[str, ...]


class Compiler:
    """XLA:CPU, as `oracle/XLA_CPU.md` has it; it runs in processes of its own."""

    def __init__(self, oracle: Path) -> None:
        self._oracle = oracle_script(oracle, "xla_oracle")

    def steps(self, text: str) -> Steps:
        """Compile a module as JAX wrote it."""
        found = self._oracle.passes(text, only_changed=False, spmd=True)
        at = max(n for n, step in enumerate(found) if step.get("pass") == _PASS)
        return Steps(
            found[at]["before"],
            found[at]["after"],
            tuple(s["pass"] for s in found[at + 1 :] if s["before"] != s["after"]),
        )

    def run(self, text: str, passes: tuple[str, ...]) -> str:
        """A module after some of XLA:CPU's passes."""
        return str(self._oracle.run_pass(text, list(passes))) if passes else text
