"""The words that complete arguments and options in shells: functions for `shell_complete=`.

Listing them imports no pass and no rule: people wait for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import click

from hloopt.commands.shared.common import CONTENT_CLASSES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Words: TypeAlias = "list[CompletionItem]"

REMARK_KINDS = ("applied", "missed", "analysis")


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Files, listed by the shell."""
    return [_item(incomplete, "file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Folders, listed by the shell."""
    return [_item(incomplete, "dir")]


def passes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Names of passes; other names of theirs where only these begin so."""
    return [_item(name) for name in _passes(incomplete)]


def pass_text(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Passes as text, whose last name is completed: `dce,fixpoint(cs` → `dce,fixpoint(cse`."""
    before = re.split(r"[^,()}\s]*$", incomplete, maxsplit=1)[0]
    if incomplete.count("{") > incomplete.count("}"):  # options of a pass
        return []
    return [_item(before + name) for name in _passes(incomplete[len(before) :])]


def pipelines(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Shipped pipelines, and files."""
    from hloopt.pass_framework.shipped import pipeline_names

    return _or_file(pipeline_names(), incomplete)


def targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Targets of the package, and files."""
    from hloopt.targets import target_names

    return _or_file(target_names(), incomplete)


def memory_spaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Names of memory spaces, of all backends."""
    from hloopt.memory.backends import BACKENDS

    names = {name for backend in BACKENDS.values() for name in backend.spaces.values()}
    return [_item(name) for name in _begun(sorted(names), incomplete)]


def rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Codes of rules, several separated by commas."""
    from hloopt.explanations import rule_codes

    return _list_of(("ALL", *rule_codes()), incomplete)


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Codes of errors and rules."""
    from hloopt.explanations import codes, rule_codes

    return [
        _item(code, help=_title(code)) for code in _begun((*codes(), *rule_codes()), incomplete)
    ]


def content_classes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Classes of content that modules are compared by, several separated by commas."""
    return _list_of(CONTENT_CLASSES.split(", "), incomplete)


def remark_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Kinds of remarks, several separated by commas."""
    return _list_of(REMARK_KINDS, incomplete)


def _passes(begin: str) -> list[str]:
    from hloopt.pass_framework.presets import PRESETS
    from hloopt.pass_framework.registry import ALIASES, pass_names

    return _begun(pass_names(), begin) or _begun(sorted({*ALIASES, *PRESETS}), begin)


def _list_of(names: Iterable[str], incomplete: str) -> Words:
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [
        _item(before + comma + name, help=_title(name))
        for name in _begun(names, last)
        if name not in given
    ]


def _or_file(names: Iterable[str], incomplete: str) -> Words:
    """Names that begin so. Bash lists files where there are none, other shells list both.

    The file comes first: the script of bash forgets the names before it.
    """
    return [_item(incomplete, "file"), *map(_item, _begun(names, incomplete))]


def _begun(names: Iterable[str], begin: str) -> list[str]:
    """The names that begin so, in whatever case: codes are typed in both."""
    return [name for name in names if name.lower().startswith(begin.lower())]


def _title(name: str) -> str | None:
    """The title of a code; None for other names."""
    from hloopt.explanations import explain

    explanation = explain(name) if name.startswith("HL") else None
    return None if explanation is None else explanation.title


def _item(value: str, type: str = "plain", help: str | None = None) -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(value, type=type, help=help)
