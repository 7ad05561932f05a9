"""Markdown as plain text."""

from __future__ import annotations

import pytest

from hloopt.cli import main
from hloopt.explanations import codes
from hloopt.reports.console.prose import wrapped_prose

MARKDOWN = """# HLO999: a title

One paragraph of several words
that goes on.

- an item of a list that is long
- another

```hlo
p = f32[4] parameter(0), all in one line
```

| a table | stays as it is, too |
"""


def test_prose_is_wrapped_and_code_is_not() -> None:
    assert (
        wrapped_prose(MARKDOWN, 20)
        == """# HLO999: a title

One paragraph of
several words that
goes on.

- an item of a list
  that is long
- another

```hlo
p = f32[4] parameter(0), all in one line
```

| a table | stays as it is, too |
"""
    )


def test_a_width_that_fits_changes_nothing_but_ends_of_lines() -> None:
    assert wrapped_prose(MARKDOWN, 100).split() == MARKDOWN.split()


@pytest.mark.parametrize("code", codes())
def test_explanations_fit_80_columns(
    code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["explain", code]) == 0
    parts = capsys.readouterr().out.split("```")
    assert max(len(line) for prose in parts[::2] for line in prose.splitlines()) <= 80


def test_indented_code_can_be_copied() -> None:
    code = "Type:\n\n    with a as file:\n        print(file.read())\n\nor more\n    words\n"
    assert wrapped_prose(code, 20) == code.replace("more\n    words", "more words")
