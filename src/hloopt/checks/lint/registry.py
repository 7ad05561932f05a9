"""The rules of lint by their codes."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from hloopt.checks.lint import rules
from hloopt.checks.lint.model import Rule


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule of the modules in `rules`, by code, in order. Imports them."""
    found: dict[str, Rule] = {}
    for info in iter_modules(rules.__path__):
        for value in vars(import_module(f"{rules.__name__}.{info.name}")).values():
            if isinstance(value, Rule):
                assert found.setdefault(value.code, value) is value, f"two rules {value.code}"
    return dict(sorted(found.items()))
