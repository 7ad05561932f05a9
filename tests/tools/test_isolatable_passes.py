"""tools/isolatable_passes.py: which passes of a compiler run alone, and the table of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compilers.fake_xla import LOG, install

from hloopt.compilers.compiling import Compiler
from isolatable_passes import Answer, Input, Pass, Pipelines, ask, passes_of, section

BRANCHES = Input("branches.before_optimizations.hlo")
LOOP = Input("fori_loop.before_optimizations.hlo")
FLAGGED = Input("fori_loop.before_optimizations.hlo", ("xla_a=b",))
PIPELINES: dict[Input, Pipelines] = {
    BRANCHES: {"tidy": {"dce", "cse"}, "dce": set(), "cse": set()},
    LOOP: {
        **{"tidy": {"dce", "cse", "inner"}, "late one": {"cse"}, "inner": {"dce"}},
        **{"dce": set(), "cse": set()},
    },
    FLAGGED: {"tidy": {"licm"}, "licm": set()},
}


def test_passes_have_their_places() -> None:
    cse, dce, inner, licm = passes_of(PIPELINES)
    assert cse == Pass(
        "cse", 0, {BRANCHES: frozenset({"tidy"}), LOOP: frozenset({"tidy", "late one"})}
    )
    assert dce.places[LOOP] == {"tidy", "inner"}
    assert (inner.name, inner.parts) == ("inner", 1)
    assert list(licm.places) == [FLAGGED]


def test_a_pass_is_asked_of_one_program_after_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    xla = install(monkeypatch, tmp_path)
    compiler = Compiler.named("h100_sxm", str(tmp_path / "fake_plugin.so"))
    cse, _, inner, _ = passes_of(PIPELINES)
    assert ask(compiler, PIPELINES, cse) == Answer()
    assert len(xla.flags) == 1
    xla.refusals[2] = "INTERNAL: not here", LOG
    assert ask(compiler, PIPELINES, cse) == Answer(missed=frozenset({"late one"}))
    assert len(xla.flags) == 3
    xla.refusals |= dict.fromkeys((4, 5), ("INTERNAL: not here", LOG))
    assert ask(compiler, PIPELINES, cse) == Answer(reason="XLA refuses the program: not here")
    assert ask(compiler, PIPELINES, inner) == Answer(reason="XLA does not come to it")


def test_the_table() -> None:
    answers = (
        Answer(missed=frozenset({"late one"})),
        Answer(),
        Answer(reason="XLA refuses a | b" + " c" * 99),
        Answer(),
    )
    text = section("XLA:GPU", "wheel 1", passes_of(PIPELINES), answers)
    head, table = text.split("\n\n", 1)
    assert head == "## XLA:GPU"
    assert "wheel 1: 3 of 4 passes run alone." in table
    rows = table.splitlines()[4:]
    assert rows[0] == "| cse | late one, tidy | not in late one |"
    assert rows[1] == "| dce | inner, tidy | yes |"
    assert rows[2].startswith(r"| inner (1 pass) | tidy | no: XLA refuses a \| b c c")
    assert rows[2].endswith("… |")
    assert rows[3] == "| licm † | tidy | yes |"
