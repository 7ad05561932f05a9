"""Pictures of pages by a browser without a window."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_WIDTH = 1280
_SCHEMES = {"light": "1", "dark": "0"}


def find_browser() -> str | None:
    """The path of Chromium, if it is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def screenshot(browser: str, page: Path, scheme: str, height: int, path: Path) -> None:
    """Write the top of a page as PNG, in the colours of a scheme: light or dark."""
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", f"--user-data-dir={page.parent / 'browser'}", "--hide-scrollbars"),
        *(f"--window-size={_WIDTH},{height}", "--virtual-time-budget=3000"),
        "--run-all-compositor-stages-before-draw",  # else a part may be missing
        *(f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}", f"--screenshot={path}"),
        page.as_uri(),
    ]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
