"""Tables of documents that tools write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DOCUMENTS = Path(__file__).parents[1] / "docs"


def renew_tables(document: Path, tables: Mapping[str, str]) -> None:
    """Put tables between the marks of their names, `<!-- NAME -->` and `<!-- end -->`.

    Tables that the document has no marks of are left out.
    """
    text = document.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, mark, rest = text.partition(begin)
        if mark:
            text = f"{before}{mark}{table}\n{end}{rest.partition(end)[2]}"
    document.write_text(text, encoding="utf-8")
