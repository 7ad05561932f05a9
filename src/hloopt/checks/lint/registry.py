"""The rules of lint by their codes."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from hloopt.checks.lint import rules
from hloopt.checks.lint.model import Rule


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule of the modules in `rules`, by code, in order. Imports them."""
    found: dict[str, Rule] = {}
    for info in walk_packages(rules.__path__, f"{rules.__name__}."):
        for value in vars(import_module(info.name)).values():
            if isinstance(value, Rule):
                assert found.setdefault(value.code, value) is value, f"two rules {value.code}"
    return dict(sorted(found.items()))
