"""Tables of documents: what is between the marks is replaced, and nothing else."""

from __future__ import annotations

from pathlib import Path

from document_tables import renew_tables


def test_only_tables_with_marks_are_renewed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- end -->\nb\n<!-- y -->\nkept\n<!-- end -->\n")
    for _ in range(2):
        renew_tables(page, {"x": "new", "z": "nowhere"})
    assert page.read_text() == (
        "a\n<!-- x -->\nnew\n<!-- end -->\nb\n<!-- y -->\nkept\n<!-- end -->\n"
    )
