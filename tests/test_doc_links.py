"""Links, headings, files and names in files to which pages of the docs point exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "testdata/README.md",
    "tests/golden/README.md",
)

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_POINTER = re.compile(r"`((?:src|tests|tools|pipelines|docs)/[\w./-]*)(?::(\w+))?`")


def pages(root: Path) -> Iterator[Path]:
    for name in PAGES:
        yield from sorted((root / name).rglob("*.md")) if (root / name).is_dir() else [root / name]


def test_every_link_leads_somewhere(root: Path) -> None:
    missing = []
    for page in pages(root):
        for link in _LINK.findall(without_code(page)):
            target, _, heading = link.partition("#")
            path = page.parent / target if target else page
            if target.startswith("http"):
                continue
            if not path.exists() or (heading and heading not in headings(path)):
                missing.append(f"{page.relative_to(root)}: {link}")
    assert missing == []


def test_every_place_in_the_code_is_there(root: Path) -> None:
    missing = []
    for page in pages(root):
        for path, name in _POINTER.findall(page.read_text(encoding="utf-8")):
            if not (root / path).exists() or (name and name not in names(root / path)):
                missing.append(f"{page.relative_to(root)}: {path}:{name}")
    assert missing == []


def test_the_index_has_every_page(root: Path) -> None:
    linked = {*_LINK.findall((root / "docs" / "index.md").read_text(encoding="utf-8"))}
    written = {page.name for page in (root / "docs").glob("*.md")} - {"index.md"}
    assert written - linked == set()


def without_code(page: Path) -> str:
    """The text of a page without its code blocks and inline code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"(?<!\[)`[^`\n]*`(?!\])", "", text)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def names(path: Path) -> set[str]:
    """The names that a module declares at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.ImportFrom(names=aliases):
                found |= {alias.asname or alias.name for alias in aliases}
    return found
