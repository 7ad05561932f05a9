"""The reference pages say what the code declares."""

import make_docs
from hloopt.pass_framework.registry import PASSES


def test_pages_are_what_the_declarations_say() -> None:
    for path, text in make_docs.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_the_list_has_every_pass() -> None:
    page = make_docs.passes_page()
    assert [name for name in PASSES if f"(passes/{name}.md)" not in page] == []
