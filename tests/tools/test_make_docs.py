"""The reference pages say what the code declares."""

import make_docs


def test_pages_are_what_the_declarations_say() -> None:
    for path, text in make_docs.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"
