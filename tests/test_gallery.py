"""The gallery shows what commands write today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.text import Text

from gallery_lib.page import gallery_page
from gallery_lib.pictures import PICTURES, Picture
from gallery_lib.terminal import set_up, svg, terminal_text, text_of, without_times


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands of the gallery read."""
    path = tmp_path_factory.mktemp("gallery")
    set_up(path)
    return path


def test_the_page_is_made_from_the_list_of_pictures(root: Path) -> None:
    page = (root / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert page == gallery_page(), "run `make gallery`"


def test_the_page_names_each_picture_that_there_is(root: Path) -> None:
    page = (root / "docs" / "gallery.md").read_text(encoding="utf-8")
    named = re.findall(r"pictures/([\w.-]+)", page)
    assert sorted(named) == sorted(path.name for path in (root / "docs" / "pictures").iterdir())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_what_its_command_writes(
    picture: Picture, folder: Path, root: Path
) -> None:
    written = "\n".join(line.rstrip() for line in terminal_text(picture, folder).plain.splitlines())
    if picture.page is not None:
        assert (folder / picture.page).read_text(encoding="utf-8").startswith("<!doctype html>")
        return
    (file,) = picture.files
    shown = text_of((root / "docs" / "pictures" / file).read_text(encoding="utf-8"))
    if picture.has_times:
        assert without_times(shown) == without_times(written), "run `make gallery`"
    else:
        assert shown == written, "run `make gallery`"


def test_an_svg_is_the_same_each_time_and_loads_nothing() -> None:
    picture = Picture("name", "", "", "hloopt verify x.hlo", columns=20)
    text = Text.from_ansi("a \x1b[1mbold\x1b[0m  word\n\n█▁ <last>")
    made = svg(picture, text)
    assert made == svg(picture, text)
    assert not re.search(r"@import|url\((?!#)|https?:(?!//www\.w3\.org/2000/svg)", made)
    assert text_of(made) == text.plain


def test_only_the_times_of_passes_are_left_out() -> None:
    table = "pass  changed  instructions    ms\ndce   yes          9 → 8  {}\n\ncopy  3  7\nwrote"
    assert without_times(table.format("1.2")) == without_times(table.format("1,234.5"))
    assert without_times(table) != without_times(table.replace("9 → 8", "9 → 7"))
    assert without_times(table) != without_times(table.replace("3  7", "3  8"))
