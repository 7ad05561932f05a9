"""A test expects each message of a remark, refusal or error, in its own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.message_sites import Expectations, Message, messages

SOURCES = Path(__file__).resolve().parents[1] / "src" / "hloopt"
ROOMS = {
    "passes/async_ops": ("passes/async_ops",),
    "passes/call_graph": ("passes/call_graph",),
    "passes/collectives": ("passes/collectives",),
    "passes/control_flow": ("passes/control_flow",),
    "passes/copy_insertion": ("passes/copy_insertion",),
    "passes/despecialization": ("passes/despecialization",),
    "passes/dots": ("passes/dots",),
    "passes/expanders": ("passes/expanders",),
    "passes/memory_space": ("memory_space", "golden/passes"),
    "passes/overlap": ("passes/overlap",),
    "passes/precision": ("passes/precision",),
    "passes/reductions": ("passes/reductions",),
    "passes/rematerialization": ("passes/rematerialization",),
    "passes/rewriting": ("passes", "golden/passes"),  # what several families use
    "passes/scheduling": ("passes/scheduling", "scheduling", "golden/schedule"),
    "passes/simplification": ("passes/simplification",),
    "scheduling": (
        *("scheduling", "passes/scheduling", "golden/schedule"),
        "golden/passes/latency-hiding-scheduler",
    ),
    "verifier": ("verifier", "golden"),
    "memory": ("memory", "golden"),
    "memory_space": ("memory_space",),
}
"""Packages whose messages all have a test, and the folders of tests that may expect them.

Golden tests of the passes that a package registers may, too.
"""


def expectations(root: Path, room: str) -> Expectations:
    sources = [path.read_text(encoding="utf-8") for path in (SOURCES / room).rglob("*.py")]
    passes = [name for text in sources for name in re.findall(r'@register\(\s*"([\w-]+)"', text)]
    folders = [*ROOMS[room], *(f"golden/passes/{name}" for name in passes)]
    files = sorted(path for folder in folders for path in (root / "tests" / folder).rglob("*"))
    files.append(root / "tests" / "passes" / "test_application_texts.py")
    return Expectations(path for path in files if path.suffix in (".py", ".hlo"))


@pytest.mark.parametrize("room", [room for room in ROOMS if (SOURCES / room).is_dir()])
def test_a_test_expects_each_message(root: Path, room: str) -> None:
    found = list(messages(SOURCES / room))
    assert found
    expected = expectations(root, room)
    assert [str(message) for message in found if not expected.have(message)] == []


def test_every_family_of_passes_is_looked_at() -> None:
    folders = [f for f in (SOURCES / "passes").iterdir() if f.is_dir() and f.name[0] != "_"]
    assert {f"passes/{folder.name}" for folder in folders} <= ROOMS.keys()


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ('context.missed(call, "off")', ["off"]),
        (
            'raise PassRefused(f"%{name} is too large", help="make it smaller")',
            ["%{} is too large"],
        ),
        ('context.applied(call, "a" if is_first else f"b{n}")', ["a", "b{}"]),
        ('return "it has " + ("one" if n == 1 else f"{n:,} users")', ["it has ", "{} users"]),
        ('why = "which %{} calls: inline that first"', ["which %{} calls: inline that first"]),
        ('context.count("calls inlined")', []),
        ('assert found, "nothing was found"', []),
        ('"""A docstring of several words."""', []),
        ('limit: int = option(0, "the largest size")', []),
        ('name = "all-reduce"', []),
    ],
)
def test_what_a_message_is(tmp_path: Path, line: str, texts: list[str]) -> None:
    (tmp_path / "module.py").write_text(line)
    assert ["{}".join(message.parts) for message in messages(tmp_path)] == texts


@pytest.mark.parametrize(
    ("text", "is_expected"),
    [
        ("missed %a: it reads %x in the body of loop %w, which stores it", True),
        ("in the body of loop %", True),
        ("it reads %x in the body", False),
        ("%w, which stores it", False),
    ],
)
def test_what_expects_a_message(tmp_path: Path, text: str, is_expected: bool) -> None:
    message = Message(tmp_path, 1, ("it reads %", " in the body of loop %", ", which stores it"))
    python, golden = tmp_path / "test_it.py", tmp_path / "it.hlo"
    python.write_text(f"def test_it():\n    assert said == {text!r}\n")
    golden.write_text(f"// RUN: hloopt opt %s\n// CHECK: {text}\n")
    assert Expectations([python]).have(message) is is_expected
    assert Expectations([golden]).have(message) is is_expected
    assert not Expectations([]).have(message)
    docstring = tmp_path / "test_docstring.py"
    docstring.write_text(f'def test_it():\n    """{text}"""\n')
    assert not Expectations([docstring]).have(message)
