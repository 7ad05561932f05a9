"""A page for each pass: docs/passes/NAME.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs_lib.examples import GOLDEN, Example, Reason, example, reasons
from hloopt.pass_framework.base import ModulePass
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.options import OptionInfo, documented_options
from hloopt.pass_framework.pipeline_text import format_value
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import ALIASES, COMPILER_PASSES, find_pass
from hloopt.pass_framework.shipped import pipeline_names
from hloopt.preserves import EXPLAINED

_COMPARED = {
    "outputs": "outputs of jaxlib 0.10.2",
    "tests": "the recorded cases of XLA's unit tests",
    "nothing": "not compared with XLA",
}
_MOST_REASONS = 20


def pass_page(root: Path, name: str, note: str) -> str:
    """The page of a pass: description, facts, options, example, and missed remarks."""
    pass_class = find_pass(name)
    parts = [note, f"# {name}", inspect.cleandoc(pass_class.__doc__ or "")]
    parts.append(table(("", ""), list(_facts(root, pass_class))))
    parts += _options(pass_class)
    if name not in COMPILER_PASSES:  # their examples would need a compiler
        parts += _example(example(root, name))
        parts += _missed(name, reasons(root, name))
    return "\n\n".join(parts) + "\n"


def xla_name(pass_class: type[ModulePass]) -> str:
    """XLA's class for a pass, as code, or that there is none."""
    return f"`xla::{pass_class.xla.class_name}`" if pass_class.xla else "a pass of hloopt"


def _facts(root: Path, pass_class: type[ModulePass]) -> Iterator[tuple[str, str]]:
    yield "in XLA", xla_name(pass_class)
    if pass_class.xla:
        yield "XLA's header", f"`{pass_class.xla.source}`"
        yield "compared with", _COMPARED[pass_class.xla.compared]
    if others := [other for other, primary in ALIASES.items() if primary == pass_class.name]:
        yield "also called", ", ".join(f"`{other}`" for other in others)
    if presets := [
        f"`{name}` for `{format_value(preset.options)}`"
        for name, preset in PRESETS.items()
        if preset.pass_name == pass_class.name
    ]:
        yield "with options called", ", ".join(presets)
    yield "preserves", f"{EXPLAINED[pass_class.preserves]} (`{pass_class.preserves}`)"
    if users := _pipelines_with(pass_class.name):
        yield "in the pipelines", ", ".join(f"`{user}`" for user in users)
    source = Path(inspect.getfile(pass_class)).resolve().relative_to(root.resolve()).as_posix()
    golden = [] if pass_class.name in COMPILER_PASSES else [f"{GOLDEN}/{pass_class.name}"]
    shown = [source, *golden, *_unit_tests(root, pass_class)]
    yield "code, tests", ", ".join(f"[{path}](../../{path})" for path in shown)


def _unit_tests(root: Path, pass_class: type[ModulePass]) -> list[str]:
    """Paths of the files and folders of tests that are named after the pass or its module."""
    _, package, *modules = pass_class.__module__.split(".")
    folder = Path("tests", package, *modules[:-1][:1])
    names = dict.fromkeys([pass_class.name.replace("-", "_"), *modules])
    paths = [folder / path for name in names for path in (f"test_{name}.py", name)]
    return [path.as_posix() for path in paths if _has_tests(root / path)]


def _has_tests(path: Path) -> bool:
    return path.is_file() or any(path.glob("test_*.py"))


def _pipelines_with(name: str) -> list[str]:
    return [
        pipeline
        for pipeline in pipeline_names()
        if any(step.made.name == name for step in find_pipeline(pipeline).passes())
    ]


def _options(pass_class: type[ModulePass]) -> Iterator[str]:
    infos = documented_options(pass_class)
    if not infos:
        return
    yield "## Options"
    if not pass_class.option_groups:
        yield _option_table(infos)
    for heading, names in pass_class.option_groups.items():
        yield f"### {heading}"
        yield _option_table([i for n in names for i in infos if i.name.partition(".")[0] == n])


def _option_table(infos: list[OptionInfo]) -> str:
    rows = [(f"`{i.name}`", cell(i.type_text), cell(i.default_text), i.doc) for i in infos]
    return table(("option", "takes", "default", ""), rows)


def _example(shown: Example) -> Iterator[str]:
    yield "## Example"
    yield shown.about
    yield f"```sh\n{shown.command}\n```"
    yield f"Before:\n\n```text\n{shown.before}\n```"
    yield f"After:\n\n```text\n{shown.after}\n```"


def _missed(name: str, found: list[Reason]) -> Iterator[str]:
    if not found:
        return
    yield "## Missed remarks"
    yield (
        f"`--remarks missed:{name}` gives a reason for each instruction that the pass does not "
        "change or improve. Some of its reasons, from its golden tests:"
    )
    rows = [(f"`%{r.instruction}` in {r.file}", cell(r.reason)) for r in found[:_MOST_REASONS]]
    yield table(("instruction", "reason"), rows)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")
