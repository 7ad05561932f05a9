"""Pictures of pages by a browser without a window."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gallery_lib.chromium import chromium

_WIDTH = 1280
_SECONDS = 2.0
"""Until a page has drawn all there is."""


def screenshot(page: Path, scheme: str, height: int, path: Path) -> None:
    """Write the top of a page as PNG, in the colours of a scheme: light or dark."""
    with TemporaryDirectory() as folder, chromium(Path(folder)) as tab:
        tab.resize(_WIDTH, height, dark=scheme == "dark")
        tab.open(page)
        time.sleep(_SECONDS)
        path.write_bytes(tab.picture())
