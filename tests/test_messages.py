"""Each message of a remark, refusal or error is expected by a test that provokes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.message_sites import Expectations, messages

ROOMS = {
    "passes/async_ops": ("passes/async_ops", "golden"),
    "passes/call_graph": ("passes/call_graph", "golden"),
    "passes/collectives": ("passes/collectives", "golden"),
    "passes/control_flow": ("passes/control_flow", "golden"),
    "passes/copy_insertion": ("passes/copy_insertion", "golden"),
    "passes/rewriting": ("passes", "golden"),
    "passes/scheduling": ("passes/scheduling", "golden"),
    "passes/simplification": ("passes/simplification", "golden"),
    "verifier": ("verifier", "text", "golden"),
    "memory": ("memory", "reports", "commands", "golden"),
}
"""Packages, and the folders of tests that provoke their messages."""

UNPROVOKED: dict[str, str] = {}
"""Messages that nothing provokes, by a part of them, and the reason."""


@pytest.mark.parametrize("room", ROOMS)
def test_a_test_expects_each_message(root: Path, room: str) -> None:
    folders = [root / "tests" / folder for folder in ROOMS[room]]
    paths = [p for f in folders for p in sorted(f.rglob("*")) if p.suffix in (".py", ".hlo")]
    expectations = Expectations(paths)
    found = list(messages(root / "src" / "hloopt" / room))
    missing = [str(m) for m in found if not expectations.have(m)]
    print(room, len(found) - len(missing), len(found))
    assert [m for m in missing if not any(part in m for part in UNPROVOKED)] == []
