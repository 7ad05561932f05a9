"""The dumps of each program, made once for all tests and workers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.jax_dumps.dumps import Dumps, make_dumps


@pytest.fixture(scope="session")
def dumps_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Dumps]:
    """The dumps of a program; the first worker that asks makes them, the others wait."""
    pytest.importorskip("jax", reason="needs the extra xla")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    found: dict[str, Dumps] = {}

    def get(program: str) -> Dumps:
        if program not in found:
            found[program] = _made_once(program, shared / f"jax_dumps_{program}")
        return found[program]

    return get


def _made_once(program: str, folder: Path) -> Dumps:
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "done").exists():
            return Dumps(program, folder)
        dumps = make_dumps(program, folder)
        (folder / "done").touch()
    return dumps
