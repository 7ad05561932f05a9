"""Assertions about modules for tests in Python, with the messages of the commands.

    from hloopt.testing import assert_collectives, expect

    compiled = jax.jit(step).lower(*args).compile()
    assert_collectives(compiled, all_gather=0, all_reduce=1)
    expect(compiled, "memory.temporaries == 0", "dots(lhs=f32).count == 0")

Each takes a module, the path of a file, HLO text, or what JAX compiled: anything with `as_text()`.
A check without a verdict at the stage of the module fails, with the reason and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import Source, counted
from hloopt.ir.module import Module

if TYPE_CHECKING:
    from hloopt.checks.results import Check


class Compiled(Protocol):
    """A program that JAX compiled, or anything else that gives HLO text."""

    def as_text(self) -> str: ...


Program: TypeAlias = "Module | Compiled | str | os.PathLike[str]"
"""A module, what JAX compiled, HLO text, or a path."""


def module_of(program: Program) -> Module:
    """The module of a program: read from its file or text unless it is one. Raises HloError."""
    from hloopt.files import load

    if isinstance(program, Module):
        return program
    if isinstance(program, os.PathLike):
        return load(os.fspath(program))
    text = program if isinstance(program, str) else program.as_text()
    if isinstance(program, str) and "\n" not in text and not text.startswith("HloModule"):
        return load(text)
    return verified_module(text, f"<{type(program).__name__}>")


def verified_module(text: str, name: str) -> Module:
    """The module of a text, which messages call `name`. Raises HloError for an invalid one."""
    from hloopt.text import parse_module
    from hloopt.verifier import ANY_TARGET, verify_module

    module = parse_module(Source(name, text))
    for error in verify_module(module, ANY_TARGET):
        raise error
    return module


def expect(
    program: Program,
    *expectations: str,
    target: str | None = None,
    max_guessed: float | None = None,
) -> None:
    """Assert what is expected of a program, in the language of `hloopt expect`.

    Raises AssertionError with all that is not as expected, and HloError for a text that is not an
    expectation.
    """
    from hloopt.checks.expectations.evaluation import check
    from hloopt.checks.expectations.grammar import parse_expectation
    from hloopt.checks.subject import Subject
    from hloopt.checks.view import MOST_GUESSED, View

    parsed = [parse_expectation(text) for text in expectations]
    module = module_of(program)
    subject = Subject(_name(module), module, CostModelChoice(target=target))
    view = View.of(subject, MOST_GUESSED if max_guessed is None else max_guessed)
    _raise_unless_passed(module, [check(each, view) for each in parsed])


def assert_collectives(program: Program, *, others: int | None = 0, **counts: int) -> None:
    """Assert how many collectives of each kind a program has, each counted once.

    Kinds are their opcodes with `_`: `all_gather=0, reduce_scatter=2`. Of kinds that are not named
    there are `others` each: none by default, any number for None. Raises AssertionError, and
    TypeError for a kind that there is not.
    """
    from hloopt.analysis.async_operations import SYNC_COLLECTIVES

    kinds = sorted(kind.value for kind in SYNC_COLLECTIVES)
    wanted = {name.replace("_", "-"): count for name, count in counts.items()}
    if unknown := sorted(wanted.keys() - set(kinds)):
        raise TypeError(f"{unknown[0]} is not a collective: there are {', '.join(kinds)}")
    if others is not None:
        wanted = {kind: wanted.get(kind, others) for kind in kinds}
    texts = [f"collectives(kind={kind}).count == {count}" for kind, count in wanted.items()]
    expect(program, *texts)


def assert_fits(program: Program, *, target: str | None = None, limit: str | None = None) -> None:
    """Assert that the memory that a program needs is there: a target's, or a limit as `70GiB`.

    Raises AssertionError, TypeError without either, and HloError for a bad one.
    """
    from hloopt.targets import load_target

    if (target is None) == (limit is None):
        raise TypeError("assert_fits needs either a target or a limit")
    size = limit if target is None else f"{load_target(target).memory_size}B"
    expect(program, f"memory.needed <= {size}")


def assert_same_program(first: Program, second: Program, *, without: Iterable[str] = ()) -> None:
    """Assert that two programs compute the same by their data flow, as `hloopt fingerprint --same`.

    Names, metadata and the order of what is not scheduled do not matter, and neither do the classes
    of content in `without`: `layout, sharding, constants, …`. Raises AssertionError that says in
    which classes they differ.
    """
    from hloopt.analysis.content import as_classes
    from hloopt.analysis.fingerprint import LEFT_OUT, Fingerprints, differing_classes

    ignored = LEFT_OUT | as_classes(without)
    left, right = (Fingerprints(module_of(each), ignored) for each in (first, second))
    if left.without() != right.without():
        classes = differing_classes(left, right)
        where = f"they differ in {', '.join(classes)}" if classes else "see `hloopt diff`"
        raise AssertionError(f"the programs do not compute the same: {where}")
    if left.elided and "constants" not in ignored:
        raise AssertionError(
            f"no verdict: {counted(left.elided, 'constant')} without values ({{...}}); print large "
            'constants, or say without=["constants"]'
        )


def assert_matches_golden(
    program: Program, path: str | os.PathLike[str], *, update: bool = False
) -> None:
    """Assert that a program is the one in a file: equal text, names and metadata included.

    With `update` the file is written instead. Raises AssertionError with the lines that differ.
    """
    from difflib import unified_diff

    from hloopt.files import write_whole
    from hloopt.text import print_module

    text = print_module(module_of(program))
    golden = Path(path)
    if update:
        write_whole(os.fspath(golden), text)
        return
    if not golden.is_file():
        raise AssertionError(f"{golden} is not there: write it with update=True")
    before = golden.read_text(encoding="utf-8")
    if text != before:
        lines = unified_diff(
            before.splitlines(), text.splitlines(), str(golden), "now", lineterm=""
        )
        raise AssertionError("\n".join([f"the program is not the one in {golden}", *lines]))


def _name(module: Module) -> str:
    return module.source.name if module.source is not None else module.name


def _raise_unless_passed(module: Module, checks: list[Check]) -> None:
    from hloopt.checks.formats.terminal import render_checks, text_of
    from hloopt.checks.results import CheckedModule, Verdict

    if bad := tuple(each for each in checks if each.verdict is not Verdict.PASSED):
        checked = [CheckedModule(_name(module), module.name, bad)]
        page = text_of(lambda console: render_checks(checked, console, _MOST_PLACES))
        raise AssertionError(f"{module.name} is not as expected\n{page}")


_MOST_PLACES = 5
