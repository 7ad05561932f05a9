"""Terminal pictures: run a command, draw its text with colours as SVG, read the text back."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from gallery_lib.pictures import SETUP, Picture


class CommandFailed(Exception):
    """A command of the gallery that ends with another exit code than its picture says."""


_ROOT = Path(__file__).parents[2]
_SVG = "{http://www.w3.org/2000/svg}"

_FONT_SIZE = 21
_TITLE_SIZE = 14
_BAR_SIZE = 24
"""The font size of block characters: they fill their lines, so that bars have no gaps."""
_ADVANCE = 0.602
"""The width of a character over the font size, as in most fonts for terminals."""
_CHARACTER_WIDTH = _FONT_SIZE * _ADVANCE
_LINE_HEIGHT = 20 * 1.22
"""The height of a line, fixed in rich."""

_THEME = TerminalTheme(
    background=(27, 31, 38),
    foreground=(214, 219, 226),
    normal=[
        *((72, 79, 88), (255, 123, 114), (99, 201, 120), (226, 176, 74)),
        *((98, 166, 255), (203, 143, 255), (75, 200, 210), (214, 219, 226)),
    ],
    bright=[
        *((139, 148, 158), (255, 161, 152), (126, 231, 135), (242, 204, 96)),
        *((138, 190, 255), (219, 174, 255), (108, 222, 230), (255, 255, 255)),
    ],
)
"""Colours on a dark background of their own: readable on light and on dark pages."""

_FONTS = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'
_FORMAT = (
    """\
<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" \
xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: FONT_SIZEpx FONTS; }}
.{unique_id}-title {{ font: TITLE_SIZEpx FONTS; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONTS", _FONTS)
    .replace("FONT_SIZE", str(_FONT_SIZE))
    .replace("TITLE_SIZE", str(_TITLE_SIZE))
)
"""The SVG of rich, but with fonts of the reader's system: nothing is loaded from elsewhere."""


def set_up(folder: Path) -> None:
    """Make all that commands of pictures read, in a new folder."""
    (folder / "build").mkdir()
    (folder / "testdata").symlink_to(_ROOT / "testdata")
    for command in SETUP:
        _run(command, folder)


def terminal_text(picture: Picture, folder: Path) -> Text:
    """Run the picture's command in `folder`: its stdout and stderr, as a terminal shows them."""
    written = _run(picture.command, folder, picture.columns, picture.exit_code)
    return _wrapped(Text.from_ansi(written), picture.columns)


def _run(command: str, folder: Path, columns: int = 80, exit_code: int = 0) -> str:
    """Run a command by a shell in which `hloopt` is the one of this tree; return its output."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
        **{"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)},
        **{"PYTHONPATH": str(_ROOT / "src"), "PYTHONUNBUFFERED": "1"},
    }
    done = subprocess.run(
        ["sh", "-c", f'hloopt() {{ "{sys.executable}" -m hloopt "$@"; }}\n{command}'],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode != exit_code:
        raise CommandFailed(f"exit code {done.returncode}\n$ {command}\n{done.stdout}")
    return done.stdout


def _wrapped(text: Text, columns: int) -> Text:
    """Break long lines where the terminal ends, as terminals do."""
    lines = Text()
    for line in text.split():
        for part in line.divide(range(columns, len(line.plain), columns)):
            lines.append_text(part).append("\n")
    return lines


def svg(picture: Picture, text: Text) -> str:
    """The picture of `text` in a window that has the command as its title."""
    console = Console(record=True, width=picture.columns, file=io.StringIO(), highlight=False)
    console.print(text, soft_wrap=True)  # with an empty line below
    made = console.export_svg(
        title=_title(picture),
        theme=_THEME,
        code_format=_FORMAT,
        font_aspect_ratio=_CHARACTER_WIDTH / 20,
        unique_id=picture.name,
    )
    # Glyphs of every font fill their columns: bars and rules have no gaps.
    made = made.replace(" textLength=", ' lengthAdjust="spacingAndGlyphs" textLength=')
    made = re.sub(r"<text (?=[^>]*>(?:&#160;|[▁-▓])+<)", f'<text font-size="{_BAR_SIZE}" ', made)
    return re.sub(r"\s+\n", "\n", made)


def _title(picture: Picture) -> str:
    """The command, cut to the width of the window."""
    buttons = 90  # px
    width = picture.columns * _CHARACTER_WIDTH - 2 * buttons
    most = int(width / (_TITLE_SIZE * _ADVANCE))
    command = picture.command
    return command if len(command) <= most else command[: most - 1] + "…"


def text_of(picture: str) -> str:
    """The lines of text that an SVG of `svg` shows."""
    lines: dict[int, str] = {}
    for each in ElementTree.fromstring(picture).iter(f"{_SVG}text"):
        if "textLength" in each.attrib:
            line = round((float(each.attrib["y"]) - 20) / _LINE_HEIGHT)
            column = round(float(each.attrib["x"]) / _CHARACTER_WIDTH)
            lines[line] = lines.get(line, "").ljust(column) + (each.text or "")
    shown = [lines.get(number, "") for number in range(max(lines) + 1)]
    return "\n".join(line.replace("\xa0", " ").rstrip() for line in shown).rstrip()


def without_times(text: str) -> str:
    """Remove the milliseconds of passes, which no two runs share; every gap becomes a blank."""
    text = re.sub(r"^(pass .*) ms$", r"\1", text, flags=re.M)
    text = re.sub(r"^(\S.* (?:yes|no) .*\d) +[\d.,]+$", r"\1", text, flags=re.M)
    return "\n".join(re.sub(" +", " ", line).rstrip() for line in text.splitlines()).strip()
