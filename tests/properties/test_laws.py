"""Passes that do more than they say are found, whichever other passes share their module."""

from __future__ import annotations

from typing import Any

import pytest
from tests.properties import laws
from tests.properties.laws import Subject, assert_laws

from hloopt.ir import Module
from hloopt.ir.opcode import Opcode

TEXT = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0)
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(p, p)
}
"""


@pytest.fixture
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    run = laws.run

    def also_silent(name: str, options: dict[str, Any], module: Module) -> bool:
        if name == "silent":
            version, root = module.version, module.entry.root
            module.entry.add(Opcode.NEGATE, root.shape, [root])
            module.version = version
            return False
        return run(name, options, module)

    monkeypatch.setattr(laws, "run", also_silent)


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize(
    "names", [["silent"], ["silent", "cse"], ["cse", "silent", "dce"], ["dce", "silent", "dce"]]
)
def test_a_silent_change_is_found(names: list[str]) -> None:
    with pytest.raises(AssertionError, match=r"silent \{\} changes the module and says that"):
        _assert_laws(names)


def _assert_laws(names: list[str]) -> None:
    subject = Subject(TEXT)
    for name in names:
        assert_laws(name, {}, subject)
    subject.assert_untouched()


def test_what_leaves_a_module_alone_is_run_again_behind_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    run = laws.run

    def noting(name: str, options: dict[str, Any], module: Module) -> bool:
        ran.append(name)
        return run(name, options, module)

    monkeypatch.setattr(laws, "run", noting)
    subject = Subject(TEXT)
    assert [assert_laws(name, {}, subject) for name in ("cse", "dce")] == [False, True]
    subject.assert_untouched()
    assert ran == ["cse", "dce", "dce", "cse"]
    subject.assert_untouched()
    assert len(ran) == 4
