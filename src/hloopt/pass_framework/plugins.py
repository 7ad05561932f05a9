"""Passes of other packages: the entry points that offer them, and where they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import raised_at

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from hloopt.pass_framework.base import ModulePass

ENTRY_POINTS = "hloopt.passes"
"""The entry-point group in which other packages offer passes; scanned only when a name is not
ours or a full listing is asked for. In a package's pyproject.toml:

    [project.entry-points."hloopt.passes"]
    my-pass = "my_package.my_pass:MyPass"
"""


def offered() -> dict[str, EntryPoint]:
    """The entry points of other packages, by the names of the passes."""
    from importlib.metadata import entry_points

    return {entry.name.replace("_", "-"): entry for entry in entry_points(group=ENTRY_POINTS)}


def load(entry: EntryPoint) -> object:
    """The object behind an entry point. What its package prints goes to stderr: stdout has results.

    Raises whatever the import raises, `SystemExit` and other `BaseException`s among it.
    """
    import contextlib
    import sys

    with contextlib.redirect_stdout(sys.stderr):
        return entry.load()


def package_of(entry: EntryPoint) -> str:
    """The package that offers a pass, with its version where it is installed as one."""
    if entry.dist is None:
        return _top(entry.value)
    return f"{entry.dist.name} {entry.dist.version}"


def place_in_package(error: BaseException, entry: EntryPoint) -> str:
    """The file and line at which the package of a pass raised an exception when it was imported."""
    return _place(raised_at(error, _top(entry.value)), package_of(entry))


def place_in_pass(error: BaseException, pass_class: type[ModulePass]) -> str | None:
    """The file and line at which a pass of another package raised an exception, else its `run`.

    None for our passes.
    """
    package = _top(pass_class.__module__)
    if package == "hloopt":
        return None
    code = pass_class.run.__code__
    where = raised_at(error, package) or f"{code.co_filename}:{code.co_firstlineno}"
    entry = offered().get(pass_class.name)
    return _place(where, package if entry is None else package_of(entry))


def _place(where: str | None, package: str) -> str:
    return f"raised at {where}, of {package}" if where else f"the package is {package}"


def _top(name: str) -> str:
    return name.partition(":")[0].partition(".")[0]
