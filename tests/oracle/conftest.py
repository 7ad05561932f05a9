"""XLA itself for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

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
