"""Buffer assignments and schedules are those of XLA."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memory_fuzz_lib.subject import Programs

pytestmark = pytest.mark.slow


def test_recorded_answers_of_xla_are_ours(shared: Path, root: Path) -> None:
    """In a process of its own, as its memory is among what is measured."""
    command = [sys.executable, str(root / "tools/memory_agreement.py"), "--shared", str(shared)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu: offsets of values" in done.stdout


def test_buffers_of_random_programs_lie_where_xla_gpu_places_them(
    shared: Path, compiler: Any
) -> None:
    programs = Programs(0, shared, os.environ["XLA_GPU_PYTHON"])
    outcomes: Counter[str] = Counter()
    for number in range(Programs.block):
        outcomes += programs.examine(number, set()).outcomes
    assert outcomes["fusions of several results: programs"] > 0
    assert outcomes["programs"] == outcomes["equal"] > 0
