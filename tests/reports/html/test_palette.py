"""The colours of pages can be read and told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from hloopt.reports.html.palette import CALL, DARK, FILLS, LIGHT, contrast, ink_on, palette_css

MODES = pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
TEXT = 4.5
"""What WCAG 2 asks of text, and below of graphics."""
GRAPHICS = 3.0


@MODES
@pytest.mark.parametrize("fill", FILLS)
def test_text_on_a_fill_can_be_read(colors: Mapping[str, str], fill: str) -> None:
    assert contrast(ink_on(colors[fill]), colors[fill]) >= TEXT


@MODES
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        *(("ink", "page"), ("dim", "page"), ("good", "page"), ("bad", "page")),
        *(("on-notice", "notice"), ("ink", CALL), ("bad", CALL)),
    ],
)
def test_text_of_the_page_can_be_read(colors: Mapping[str, str], ink: str, ground: str) -> None:
    assert contrast(colors[ink], colors[ground]) >= TEXT


@MODES
@pytest.mark.parametrize("fill", [fill for fill in FILLS if fill != CALL])
def test_fills_stand_out_of_the_page(colors: Mapping[str, str], fill: str) -> None:
    assert contrast(colors[fill], colors["page"]) >= GRAPHICS


def test_black_or_white_can_be_read_on_any_colour() -> None:
    steps = range(0, 256, 15)
    for red in steps:
        for green in steps:
            for blue in steps:
                color = f"#{red:02x}{green:02x}{blue:02x}"
                assert contrast(ink_on(color), color) >= TEXT


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#ffffff", "#777777") == contrast("#777777", "#ffffff")


# What people see who lack the cones for green, or those for red: Machado, Oliveira and Fernandes
# 2009, of linear RGB.
_VIEWS = {
    "all cones": np.eye(3),
    "no green cones": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
    "no red cones": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
}
_LMS = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
_OKLAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


def _oklab(color: str, view: str) -> np.ndarray:
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(_VIEWS[view] @ linear, 0, 1)
    result: np.ndarray = _OKLAB @ np.cbrt(_LMS @ seen)
    return result


@MODES
@pytest.mark.parametrize(
    ("view", "least"), [("all cones", 0.1), ("no green cones", 0.045), ("no red cones", 0.045)]
)
def test_fills_are_told_apart(colors: Mapping[str, str], view: str, least: float) -> None:
    """By the distance in OKLab, where 0.02 is just noticeable side by side."""
    seen = {fill: _oklab(colors[fill], view) for fill in FILLS if fill != CALL}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= least, (one, other)


def test_styles_and_scripts_have_no_colours_of_their_own(root: Path) -> None:
    known = set(re.findall(r"--([\w-]+):", palette_css()))
    known |= {"fill", "on-fill"}  # those of a kind of instruction, of the palette
    for path in sorted((root / "src" / "hloopt" / "reports" / "html" / "assets").iterdir()):
        if path.is_dir():  # of others
            continue
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"#[0-9a-fA-F]{3,8}\b|\b(rgb|hsl)a?\(|\b(gray|red|white)\b(?!-)", text
        ), path
        assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= known, path
        assert set(re.findall(r'color\("([\w-]+)"\)', text)) <= known, path
        assert set(re.findall(r'fill: "([\w-]+)"', text)) <= known, path
