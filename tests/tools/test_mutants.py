"""Mutation testing: which changes are made, which tests they meet, what is kept of it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import mutants
from mutants_lib import trial
from mutants_lib.coverage_map import CoverageMap, RecordedTest, is_test, record
from mutants_lib.operators import Mutant, mutants_of
from mutants_lib.rooms import ROOMS, files_of
from mutants_lib.sampling import draw
from mutants_lib.state import State
from mutants_lib.trees import Trees
from mutants_lib.trial import (
    KILLED,
    SURVIVED,
    TIMED_OUT,
    Verdict,
    batches_of,
    judge,
    judge_by_all_tests,
)


def _changes(text: str) -> list[str]:
    source = textwrap.dedent(text).encode()
    return [mutant.change(source) for mutant in mutants_of("code.py", source)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", ["comparison: a < b -> (a <= b)"]),
        ("a <= b", ["comparison: a <= b -> (a < b)"]),
        ("a == b", ["comparison: a == b -> (a != b)"]),
        ("not a", ["not: not a -> a"]),
        (
            "a and b",
            [
                "and/or: a and b -> (a or b)",
                "drop condition: a and b -> a",
                "drop condition: a and b -> b",
            ],
        ),
        ("[a for a in b if a]", ["drop condition: [a for a in b if a] -> [a for a in b]"]),
        ("a = 1", ["constant: 1 -> 0", "constant: 1 -> 2"]),
        ("a = 0", ["constant: 0 -> (-1)", "constant: 0 -> 1"]),
        ("a + b", ["arithmetic: a + b -> (a - b)"]),
        ("a + 'text'", []),
        ("a = min(b, c)", ["function: min -> max"]),
        ("f(a, b)", ["drop statement: f(a, b) -> pass", "swap arguments: f(a, b) -> f(b, a)"]),
        ("f(a, a)", ["drop statement: f(a, a) -> pass"]),
        ("a.b = c", ["drop statement: a.b = c -> pass"]),
        ("if a:\n    b", ["condition: a -> False", "condition: a -> True"]),
        ("a = b if c else d", ["condition: b if c else d -> b", "condition: b if c else d -> d"]),
        (
            "while a:\n    continue",
            ["drop statement: continue -> pass", "jump: continue -> break"],
        ),
        ("while a:\n    break", ["jump: break -> continue"]),
        ("def f():\n    return a", ["return: a -> None"]),
        ("def f() -> bool:\n    return a", ["return: a -> False", "return: a -> True"]),
        ("def f() -> bool:\n    return True", ["return: True -> False"]),
        ("match a:\n    case b if c:\n        d", ["condition: c -> True"]),
        ("def f(a: list[1]) -> g[2]:\n    raise E(3)", []),
        ("f'{a < b}'", []),
        ("if TYPE_CHECKING:\n    a < b", []),
    ],
)
def test_kinds_of_changes(text: str, expected: list[str]) -> None:
    assert sorted(_changes(text)) == sorted(expected)


def test_changes_keep_what_stands_around_them() -> None:
    source = "é = f(ä < b)  # why\nx = not (y and z)\n".encode()
    texts = {mutant.applied(source).decode() for mutant in mutants_of("code.py", source)}
    assert "é = f((ä <= b))  # why\nx = not (y and z)\n" in texts
    assert "é = f(ä < b)  # why\nx = not ((y or z))\n" in texts


def test_all_mutants_of_a_real_file_compile(root: Path) -> None:
    file = "src/hloopt/passes/rewriting/conversions.py"
    source = (root / file).read_bytes()
    mutants = mutants_of(file, source)
    assert len(mutants) > 10
    for mutant in mutants:
        compile(mutant.applied(source), file, "exec")


def test_rooms_stand_where_the_table_says(root: Path) -> None:
    assert all(files_of(root, list(ROOMS)).values())
    assert files_of(root, ["tools/mutants.py"]) == {"tools/mutants.py": ["tools/mutants.py"]}
    with pytest.raises(ValueError, match="nowhere: there is no nowhere: rooms are collectives, "):
        files_of(root, ["nowhere"])


def _mutants(file: str, lines: int) -> list[Mutant]:
    return mutants_of(file, b"a = 1\n" * lines)


def test_a_sample_has_each_room_in_proportion_to_its_lines() -> None:
    rooms = {"one": _mutants("one.py", 100), "other": _mutants("other.py", 100)}
    drawn = draw(rooms, {"one": 300, "other": 100}, seed=5, count=40)
    assert {room: len(mutants) for room, mutants in drawn.items()} == {"one": 30, "other": 10}
    assert len({mutant.line for mutant in drawn["one"]}) == 30, "two mutants of a line"
    assert drawn == draw(rooms, {"one": 300, "other": 100}, seed=5, count=40)
    assert drawn != draw(rooms, {"one": 300, "other": 100}, seed=6, count=40)
    more = draw(rooms, {"one": 300, "other": 100}, seed=5, count=400)
    assert more["one"][:30] == drawn["one"]
    assert sorted(more["one"]) == rooms["one"], "200 are all"


def test_tests_that_are_most_about_a_file_come_first() -> None:
    (mutant, _) = _mutants("code.py", 1)
    broad = RecordedTest("a.py::broad", 0.1, {"code.py": 0b1, "other.py": 0b1111})
    near = RecordedTest("b.py::near", 0.1, {"code.py": 0b11})
    quick = RecordedTest("b.py::quick", 0.01, {"code.py": 0b11})
    nearest = RecordedTest("c.py::nearest", 0.1, {"code.py": 0b111})
    endless = RecordedTest("d.py::endless", 30.0, {"code.py": 0b1, "other.py": 0b1})
    batches = batches_of(mutant, [broad, endless, near, nearest, quick])
    assert batches == [[quick, near, nearest], [broad]]
    assert batches_of(mutant, [endless]) == [[endless]]


def test_what_runs_on_import_is_tried_on_all_tests_of_its_file() -> None:
    source = b"a = 1\ndef f(x=2):\n    return (3 +\n        4)\n"
    mutants = {mutant.line: mutant for mutant in mutants_of("code.py", source)}
    first = RecordedTest("t.py::first", 0.1, {"code.py": 1 << 3})
    second = RecordedTest("t.py::second", 0.1, {"code.py": 1 << 9})
    coverage = CoverageMap([first, second], "digest")
    assert coverage.tests_of(mutants[1]) == [first, second]
    assert coverage.tests_of(mutants[2]) == [first, second]
    assert coverage.tests_of(mutants[3]) == [first]
    assert coverage.tests_of(mutants[4]) == [first], "a line that the tracer does not see"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/tools/test_mutants.py", True),
        ("tests/memory/modules.py", False),
        ("tests/golden/opt/remarks.hlo", True),
        ("tests/golden/opt/inputs/remarks.hlo", False),
        ("tests/golden/README.md", False),
    ],
)
def test_files_of_tests(path: str, expected: bool) -> None:
    assert is_test(Path(path)) == expected


def test_answers_are_kept_as_long_as_they_hold(tmp_path: Path) -> None:
    source = b"a = 1\n"
    killed, survived = mutants_of("code.py", source)
    path = tmp_path / "answers.jsonl"
    state = State(path, "now")
    state.add(killed, source, Verdict(KILLED, 3, "test"))
    state.add(survived, source, Verdict(SURVIVED, 3))
    with path.open("a") as file:
        file.write('{"mutant": "cut o')
    again = State(path, "now")
    assert again.get(killed, source) == Verdict(KILLED, 3, "test")
    assert again.get(survived, source) == Verdict(SURVIVED, 3)
    assert again.get(killed, source + b"b = 2\n") is None
    again.add(survived, source, Verdict(SURVIVED, 4))
    assert State(path, "now").get(survived, source) == Verdict(SURVIVED, 4)
    later = State(path, "tests changed")
    assert later.get(killed, source) == Verdict(KILLED, 3, "test")
    assert later.get(survived, source) is None


FILE = "src/hloopt/code_under_test.py"
CODE = """\
def upto(limit: int) -> int:
    number = 0
    while number < limit:
        number += 1
    return number


def unseen() -> int:
    return 7
"""

TESTS = """\
import code_under_test


def test_upto():
    assert code_under_test.upto(3) == 3


def test_unseen_is_only_called():
    code_under_test.unseen()


def test_that_fails():
    assert code_under_test.upto(3) == 4
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one module and its tests."""
    root = tmp_path / "checkout"
    for path, text in ((root / FILE, CODE), (root / "tests" / "test_code.py", TESTS)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (root / "pytest.ini").write_text(
        "[pytest]\npythonpath = src/hloopt\nmarkers =\n    slow\n    oracle\n"
    )
    return root


@pytest.mark.slow
def test_mutants_in_a_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = Trees(checkout, tmp_path / "build", 1)
    coverage = record(trees, ["tests/test_code.py"], tmp_path / "coverage", print)
    # Everything is known by now.
    monkeypatch.setattr(Trees, "one", None)
    coverage = record(trees, ["tests/test_code.py"], tmp_path / "coverage", print)
    monkeypatch.undo()

    source = (checkout / FILE).read_bytes()
    found = {mutant.change(source): mutant for mutant in mutants_of(FILE, source)}
    less = found["comparison: number < limit -> (number <= limit)"]
    seven = found["constant: 7 -> 8"]
    endless = found["drop statement: number += 1 -> pass"]
    assert [test.name for test in coverage.tests_of(less)] == ["tests/test_code.py::test_upto"]
    with trees.one() as tree:
        verdict = judge(tree, less, coverage.tests_of(less))
        assert verdict == Verdict(KILLED, 1, "tests/test_code.py::test_upto")
        assert judge(tree, seven, coverage.tests_of(seven)) == Verdict(SURVIVED, 1)
        assert judge(tree, seven, []) == Verdict(SURVIVED, 0)
        monkeypatch.setattr(trial, "_SECONDS", 3.0)
        assert judge(tree, endless, coverage.tests_of(endless)).outcome == TIMED_OUT
        (tree.folder / "tests" / "test_code.py").write_text(TESTS.partition("def test_that")[0])
        assert judge_by_all_tests(tree, seven) == Verdict(SURVIVED, 0, all_tests=True)
        assert judge_by_all_tests(tree, less).outcome == KILLED
        assert (tree.folder / FILE).read_bytes() == source
    assert (checkout / FILE).read_bytes() == source


@pytest.mark.slow
def test_the_report(
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(mutants, "_ROOT", checkout)
    (checkout / FILE).write_text(CODE.partition("def unseen")[2].join(["def unseen", ""]))
    options = ["--jobs", "1", "--count", "9", "--build", str(tmp_path / "build"), FILE]
    for build in ("made", "known"):
        monkeypatch.setattr("sys.argv", ["mutants.py", *options])
        assert mutants.main() == 1
        report = capsys.readouterr().out
        assert f"{FILE}:2: constant: 7 -> 8 (1 tests)" in report, build
        assert "0.0% of 3 mutants killed, 85% wanted" in report
        monkeypatch.setattr(mutants, "judge", None)
    monkeypatch.setattr("sys.argv", ["mutants.py", "nowhere"])
    assert mutants.main() == 2
    assert "nowhere: there is no nowhere" in capsys.readouterr().err
