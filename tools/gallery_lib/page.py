"""The page of the gallery."""

from __future__ import annotations

import re
from textwrap import fill, wrap

from gallery_lib.pictures import PICTURES, SETUP, Picture

_HEAD = """\
<!-- Written by `make gallery`. -->

# Gallery

What hloopt shows, with the command that shows it. Modules are those of
[testdata/](../testdata/README.md): JAX programs that XLA lowered for eight devices. No GPU is
needed: times on the H100 are of a model, XLA's own speed of light
([cost_models.md](cost_models.md)). The first pictures are of the loop of the
[tutorial](tutorial.md). To type the commands yourself, in a clone, make first what they read:
"""


def gallery_page() -> str:
    """The text of docs/gallery.md."""
    return "\n".join([_HEAD, _shell("mkdir -p build", *SETUP) + "\n", *map(_section, PICTURES)])


def _section(picture: Picture) -> str:
    text = fill(picture.text, 100, break_on_hyphens=False)
    parts = [f"## {picture.heading}", text, _shell(picture.command), _image(picture)]
    return "\n\n".join(parts) + "\n"


def _shell(*commands: str) -> str:
    """Commands as a block, in lines that a page has place for; an option keeps its value."""
    text = []
    for command in commands:
        kept = re.sub(r"( -+[\w-]+) (?!-)", "\\1\0", command)
        lines = wrap(kept, 90, subsequent_indent="    ", break_on_hyphens=False)
        text.append(" \\\n".join(lines).replace("\0", " "))
    return "\n".join(["```sh", *text, "```"])


def _image(picture: Picture) -> str:
    light, *dark = (f"pictures/{file}" for file in picture.files)
    if not dark:
        return f"![{picture.heading}]({light})"
    return (
        "<picture>\n"
        f'  <source media="(prefers-color-scheme: dark)" srcset="{dark[0]}">\n'
        f'  <img alt="{picture.heading}" src="{light}">\n'
        "</picture>"
    )
