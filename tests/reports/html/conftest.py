"""A browser and the page of a module in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.reports.html.browsing import H100, MODULE

from gallery_lib.chromium import Tab, chromium
from hloopt.files import read_module
from hloopt.reports.view.findings import view_of


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a training step."""
    path = tmp_path_factory.mktemp("pages") / "view.html"
    path.write_text(view_of(read_module(str(MODULE)), None, H100), encoding="utf-8")
    return path
