#!/usr/bin/env python3
"""Write docs/gallery.md and its pictures, by running the commands of tools/gallery_lib/pictures.py.

    tools/make_gallery.py [--only TEXT]

Pictures of pages need Chromium. A picture stays as it is where only the times of passes differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from gallery_lib.browser import screenshot
from gallery_lib.chromium import find_chromium
from gallery_lib.page import gallery_page
from gallery_lib.pictures import PICTURES, Picture
from gallery_lib.terminal import set_up, svg, terminal_text, text_of, without_times

DOCS = Path(__file__).parent.parent / "docs"
_FOLDER = DOCS / "pictures"


def main(arguments: list[str] | None = None) -> int:
    """Write the page and the pictures, remove other files; 1 if pictures of pages are left out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="only pictures whose names contain this")
    only = parser.parse_args(arguments).only
    has_browser = find_chromium() is not None
    _FOLDER.mkdir(exist_ok=True)
    left_out = []
    with TemporaryDirectory() as folder:
        set_up(Path(folder))
        for picture in PICTURES:
            if only not in picture.name:
                continue
            if picture.page and not has_browser:
                left_out.append(picture.name)
            else:
                _make(picture, Path(folder))
    (DOCS / "gallery.md").write_text(gallery_page(), encoding="utf-8")
    named = {file for picture in PICTURES for file in picture.files}
    for path in _FOLDER.iterdir():
        if path.name not in named:
            path.unlink()
    if left_out:
        print(f"no Chromium, not made again: {', '.join(left_out)}", file=sys.stderr)
    return 1 if left_out else 0


def _make(picture: Picture, folder: Path) -> None:
    """Write the files of a picture."""
    text = terminal_text(picture, folder)
    if picture.page:
        for file in picture.files:
            scheme = file.split(".")[-2]
            screenshot(folder / picture.page, scheme, picture.height, _FOLDER / file)
        return
    path, made = _FOLDER / picture.files[0], svg(picture, text)
    if picture.has_times and path.exists():
        shown = text_of(path.read_text(encoding="utf-8"))
        if without_times(shown) == without_times(text_of(made)):
            return
    path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
