"""The fuzzer: the same texts each time, all kinds of findings, and none in a few hundred texts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz_lib import checks
from fuzz_lib.mutations import Texts, mutated
from fuzz_lib.reduction import reduced
from fuzz_lib.workers import Settings, clock, examine, run

TEXT = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(q, p)
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.hlo").write_text(TEXT)
    (tmp_path / "b.hlo").write_text(TEXT.replace("negate", "abs"))
    return tmp_path


def test_the_seed_and_the_number_decide_what_a_text_is(folder: Path) -> None:
    first = [mutated(Texts([folder]), 7, number) for number in range(50)]
    again = [mutated(Texts([folder]), 7, number) for number in reversed(range(50))]
    assert first == again[::-1]
    assert len({*first}) > 30
    assert first != [mutated(Texts([folder]), 8, number) for number in range(50)]


def test_a_good_text_is_valid_a_broken_one_refused() -> None:
    assert checks.check(TEXT, thorough=True) == ("valid", None)
    assert checks.check(TEXT.replace("add(q", "add(x"), thorough=True) == ("refused", None)
    invalid = TEXT.replace("ROOT r = f32[4]{0}", "ROOT r = f32[5]{0}")
    assert checks.check(invalid, thorough=True) == ("invalid", None)


def _hang(text: str) -> object:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pass
    raise AssertionError("nobody stopped this")


def _hoard(text: str) -> object:
    return bytearray(600 << 20)


def _crash(text: str) -> object:
    raise KeyError(text[:3])


@pytest.mark.parametrize(
    ("broken", "kind"),
    [(_crash, "KeyError"), (_hang, "TooSlow"), (_hoard, "MemoryError")],
)
def test_what_must_not_happen_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: object, kind: str
) -> None:
    monkeypatch.setattr(checks, "parse_module", broken)
    settings = Settings((folder,), seed=0, seconds=0.3, reduction_seconds=1)
    with clock():
        progress = examine(settings, TEXT, 3, set())
    (finding,) = progress.findings
    assert finding.problem.kind.startswith(f"read: {kind}")
    assert finding.number == 3


def test_a_print_that_is_not_read_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "print_module", lambda module, options: "HloModule m, x")
    _, problem = checks.check(TEXT, thorough=False)
    assert problem is not None
    assert problem.kind == "print (full): the print is refused"


def test_a_finding_is_made_smaller() -> None:
    small = reduced(TEXT, lambda text: "negate(" in text and "{" in text, seconds=5)
    assert len(small) < 12


def test_folders_without_texts_are_an_error(folder: Path) -> None:
    settings = Settings((folder / "nothing here",), seed=0)
    with pytest.raises(OSError, match="no HLO texts"):
        list(run(settings, 0, 1, jobs=1))


@pytest.mark.slow
def test_a_few_hundred_broken_texts_do_no_harm(root: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "tools/fuzz.py", "--count", "600", "--seed", "1", "--save", tmp_path],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("600 texts ("), result.stdout
    assert "0 valid" not in result.stdout
    assert list(tmp_path.iterdir()) == []
