"""`write`: a module in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.run.modules import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a module into a file; its path."""

    def write(text: str) -> str:
        path = tmp_path / "step.hlo"
        path.write_text(text)
        return str(path)

    return write
