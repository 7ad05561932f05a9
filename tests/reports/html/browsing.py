"""The page of a module in a browser: where tests click, press and read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gallery_lib.chromium import NAMES, Tab, find_chromium
from hloopt.cost_models import CostModelChoice

BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed"
    ),
]
"""The marks of tests that need a browser."""

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
MODULE = TESTDATA / "transformer_scan_8dev.after_optimizations.hlo.gz"
BEFORE = TESTDATA / "transformer_scan_8dev.after_spmd_partitioning.hlo"
H100 = CostModelChoice(target="h100_sxm")
ENTRY, CHOSEN = "main.48_spmd", "all-reduce.126"


def until(tab: Tab, script: str) -> Any:
    """The value of an expression once it is true."""
    for _ in range(100):
        if value := tab.run(script):
            return value
        time.sleep(0.1)
    pytest.fail(f"never: {script}")


def show(tab: Tab, path: Path, fragment: str = "", width: int = 1280) -> None:
    tab.resize(width, 800)
    tab.open(path, fragment=f"?{time.monotonic()}{fragment}")
    until(tab, "document.documentElement.dataset.ready && lines !== null")


def text(tab: Tab, selector: str) -> str:
    value = until(tab, f"document.querySelector('{selector}')?.textContent")
    assert isinstance(value, str)
    return value


def click(tab: Tab, selector: str) -> None:
    """A click of the mouse on an element, once it is there."""
    until(tab, f"document.querySelector('{selector}') !== null")
    place = f"""(() => {{ const element = document.querySelector('{selector}');
      element.scrollIntoView({{ block: "nearest", inline: "nearest" }});
      const box = element.getBoundingClientRect();
      return [box.x + Math.min(box.width / 2, 60), box.y + box.height / 2]; }})()"""
    tab.click(*tab.run(place))


def having(selector: str, words: str) -> str:
    """The script for the first element that has words."""
    return (
        f"[...document.querySelectorAll('{selector}')].find(e => e.textContent.includes('{words}'))"
    )


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        printed = {"text": key} if len(key) == 1 else {}
        tab.call("Input.dispatchKeyEvent", **{"type": "keyDown", "key": key, **printed})
        tab.call("Input.dispatchKeyEvent", **{"type": "keyUp", "key": key})
        time.sleep(0.1)


def inside(report: str, script: str) -> str:
    """The script for the value of an expression of a report's own page, once it is loaded."""
    frame = f"document.querySelector('#{report} iframe')?.contentWindow"
    return f"{frame}?.document.querySelector('#rows') && {frame}.eval(`{script}`)"
