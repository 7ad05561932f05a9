"""The reference pages say what the code declares."""

from pathlib import Path

import pytest

import make_docs
from docs_lib.pass_pages import pass_page
from hloopt.pass_framework.registry import PASSES


def test_pages_are_what_the_declarations_say() -> None:
    for path, text in make_docs.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_the_list_has_every_pass() -> None:
    page = make_docs.passes_page()
    assert [name for name in PASSES if f"(passes/{name}.md)" not in page] == []


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("cse", "simplification/test_cse.py"),
        ("simplify-sorts", "simplification/test_sort_simplifier.py"),
        ("collective-pipeliner", "collectives/collective_pipeliner"),
        ("gpu-all-reduce-combiner", "collectives/test_collective_combiner.py"),
        ("add-special-case-copies", "copy_insertion/test_copy_insertion.py"),
    ],
)
def test_the_page_of_a_pass_links_the_tests_named_after_it_or_its_module(
    root: Path, name: str, tests: str
) -> None:
    path = f"tests/passes/{tests}"
    golden = f"[tests/golden/passes/{name}](../../tests/golden/passes/{name})"
    assert f"{golden}, [{path}](../../{path}) |\n" in pass_page(root, name, "")
