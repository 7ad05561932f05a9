"""Selections of rules: the more specific of what is selected and ignored decides."""

from __future__ import annotations

import pytest

from hloopt.checks.lint.selection import SelectionError, check_selectors, selected


@pytest.mark.parametrize(
    ("select", "ignore", "is_selected"),
    [
        (["ALL"], [], True),
        (["ALL"], ["HLL003"], False),
        (["HLL"], ["ALL"], True),
        (["HLL003"], ["HLL0"], True),
        (["HLL0"], ["HLL003"], False),
        (["HLL003"], ["HLL003"], False),
        (["exposed-collective"], ["HLL003"], False),
        (["exposed-collective"], ["HLL00"], True),
        (["HLL0"], ["exposed-collective"], False),
        (["HLL001"], [], False),
        ([], [], False),
    ],
)
def test_the_more_specific_decides(select: list[str], ignore: list[str], is_selected: bool) -> None:
    assert ("HLL003" in [rule.code for rule in selected(select, ignore)]) == is_selected


def test_selectors_are_names_or_codes_in_any_case() -> None:
    given = ["hll003", "all", "Hll0", "exposed-collective"]
    assert check_selectors(given) == ("HLL003", "ALL", "HLL0", "exposed-collective")


@pytest.mark.parametrize("selector", ["", "HLL9", "LL0", "exposed", "*"])
def test_a_selector_without_rules_is_a_mistake(selector: str) -> None:
    with pytest.raises(SelectionError, match="no rule is called"):
        check_selectors([selector])
