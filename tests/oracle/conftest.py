"""XLA itself for the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_script import oracle_script
from xla_process import XlaProcess


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaProcess]:
    """XLA's reader and printer."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    process = XlaProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def xla_print(xla: XlaProcess) -> Callable[[str], str | None]:
    """What XLA prints for a text, constants in full; None where it refuses it or dies of it."""
    return lambda text: xla.read(text, style="whole").text


@pytest.fixture(scope="module")
def compiler(shared: Path) -> Any:
    """The driver of XLA:GPU; skips where the packages that hold the compiler are missing."""
    if "XLA_GPU_PYTHON" not in os.environ:
        pytest.skip("set XLA_GPU_PYTHON to a Python that has XLA:GPU (oracle/XLA_GPU.md)")
    return oracle_script(shared / "oracle", "xla_gpu")
