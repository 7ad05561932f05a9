"""The record of what XLA makes of converts: its programs and their notation."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from hloopt.text import parse_module
from hloopt.verifier import verify_module
from record_conversions import hlo, main, notation, program


def test_the_notation_of_a_module_is_what_it_was_made_of() -> None:
    """Instructions sorted by their names."""
    module = parse_module(hlo("p:f32 a:bf16(p) b:f32(a) c:add(b,b) -> c a"))
    assert notation(module) == "a:bf16(p) b:f32(a) c:add(b,b) p:f32 -> c a"
    assert notation(parse_module(hlo("p:f32 a:bf16(p) -> a"))) == "a:bf16(p) p:f32 -> a"


def test_programs_are_valid_and_follow_from_the_seed() -> None:
    chooser = random.Random(3)
    programs = [program(chooser) for _ in range(50)]
    again = random.Random(3)
    assert programs == [program(again) for _ in range(50)]
    for each in programs:
        assert verify_module(parse_module(hlo(each))) == [], each


def test_without_the_compiler_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = ["--python", sys.executable]
    monkeypatch.setattr(sys, "argv", ["tool", "--shared", str(shared), *python])
    assert main() == 2
    assert "has no XLA:GPU" in capsys.readouterr().err
