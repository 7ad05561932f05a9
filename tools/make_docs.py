"""Write the reference pages of docs/ from the declarations of commands, passes and conditions.

python tools/make_docs.py            write them
python tools/make_docs.py --check    exit 1 if a page is not what would be written
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from docs_lib.pass_pages import cell, pass_page, table, xla_name
from docs_lib.simplification_rules import simplification_rules_page
from hloopt.analysis.content import CLASSES
from hloopt.checks.expectations.model import Attribute, Combine, Measure, Scalar
from hloopt.checks.expectations.names import GROUPS
from hloopt.checks.expectations.names import TABLES as EXPECTED_TABLES
from hloopt.checks.lint.pages import page_of
from hloopt.checks.lint.registry import all_rules
from hloopt.cli import cli
from hloopt.explanations import RULE_FAMILIES, codes, explain
from hloopt.pass_framework.base import ModulePass
from hloopt.pass_framework.conditions import CONDITIONS
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import format_passes
from hloopt.pass_framework.registry import COMPILER_PASSES, PASSES, find_pass
from hloopt.pass_framework.shipped import pipeline_names
from hloopt.query.keys import FAMILIES, KEYS, Family, Key

ROOT = Path(__file__).parent.parent
NOTE = "<!-- Written by `make docs` from the code. -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    stale = {
        path: text
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if check:
            print(f"out of date: {path.relative_to(ROOT)}; run `make docs`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def pages() -> dict[Path, str]:
    """Every generated page, by its path."""
    return {
        ROOT / "docs" / "commands.md": commands_page(),
        ROOT / "docs" / "passes.md": passes_page(),
        ROOT / "docs" / "errors.md": errors_page(),
        ROOT / "docs" / "selectors.md": selectors_page(),
        ROOT / "docs" / "expectations.md": expectations_page(),
        ROOT / "docs" / "rules.md": rules_page(),
        ROOT / "docs" / "algsimp_rules.md": simplification_rules_page(NOTE),
        **{
            ROOT / "docs" / "rules" / f"{code}.md": f"{NOTE}\n\n{page_of(code)}"
            for code in all_rules()
        },
        **{
            ROOT / "docs" / "passes" / f"{name}.md": pass_page(ROOT, name, NOTE)
            for name in (*PASSES, *COMPILER_PASSES)
        },
    }


def commands_page() -> str:
    """The help of each command, with its arguments and options."""
    parts = [NOTE, "# Commands", _prose(cli.help)]
    for name, command in _commands(cli, "hloopt"):
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        options = [p for p in command.params if isinstance(p, click.Option)]
        usage = " ".join([name, "[OPTIONS]", *map(_argument, arguments)])
        rows = [(_option(option), option.help or "") for option in options]
        parts += [f"## {name}", f"`{usage}`", _prose(command.help)]
        parts.append(table(("option", ""), rows))
        if name == "hloopt diff":
            classes = [(f"`{each.name}`", each.help) for each in CLASSES.values()]
            parts.append(table(("class of content", ""), classes))
    return "\n\n".join(parts) + "\n"


def _commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group and of the groups in it, with their whole names."""
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{name} {each}")
        else:
            yield f"{name} {each}", command


def _prose(text: str | None) -> str:
    """A docstring as Markdown; what click keeps as it is becomes code."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(
        f"```sh\n{p.removeprefix(chr(8)).lstrip()}\n```" if p.startswith("\b") else p
        for p in paragraphs
    )


def _argument(argument: click.Argument) -> str:
    name = (argument.metavar or argument.human_readable_name).upper()
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> str:
    names = [*option.opts, *option.secondary_opts]
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = option.metavar or "|".join(map(str, choices))
    if not value and not option.is_flag:
        value = option.type.name.upper()
    return f"`{'`, `'.join(names)}`" + (f" {cell(value)}" if value else "")


def rules_page() -> str:
    """The list of the rules of lint, by subject."""
    parts = [NOTE, "# Rules of lint"]
    parts.append(
        "Each rule has a page: what it looks for, why that matters, an example, what to do, its "
        "options, the figures that it rests on. `hloopt explain CODE` prints it. How rules are "
        "chosen and set is in [lint.md](lint.md)."
    )
    for digit, members in groupby(all_rules().values(), lambda rule: rule.code[len("HLL")]):
        rows = [
            (
                f"[{rule.code}](rules/{rule.code}.md)",
                f"`{rule.name}`",
                rule.title,
                rule.severity.value,
            )
            for rule in members
        ]
        parts += [f"## {RULE_FAMILIES[digit]}", table(("code", "name", "finds", "severity"), rows)]
    return "\n\n".join(parts) + "\n"


_FAMILIES = {
    "call_graph": "Call graph",
    "simplification": "Simplification",
    "dots": "Products",
    "expanders": "Operations written out in others",
    "reductions": "Reductions and scans",
    "control_flow": "Loops and conditionals",
    "collectives": "Collectives",
    "async_ops": "Asynchronous operations",
    "copy_insertion": "Copies",
    "precision": "Precision",
    "memory_space": "Memory space assignment",
    "rematerialization": "Rematerialization",
    "scheduling": "Scheduling",
    "despecialization": "Undoing what a backend made special",
    "overlap": "Searches over several passes",
    "steps": "Runs of XLA's own compiler",
}
"""Headings for the families of passes: packages of `hloopt.passes`, a module of compilers."""


def passes_page() -> str:
    """The list of all passes by family, the shipped pipelines and the conditions."""
    parts = [NOTE, "# Passes and pipelines"]
    parts.append(
        "Each pass has a page: what it does, its options, an example before and after, the reasons "
        "why it leaves something alone. `hloopt passes NAME` shows a part of it on the terminal."
    )
    passes = {name: find_pass(name) for name in sorted({*PASSES, *COMPILER_PASSES})}
    for family, heading in _FAMILIES.items():
        rows = [
            (f"[{name}](passes/{name}.md)", cell(_summary(found)), xla_name(found))
            for name, found in passes.items()
            if found.__module__.split(".")[2] == family
        ]
        parts += [f"## {heading}", table(("pass", "what it does", "in XLA"), rows)]
    parts += ["## Shipped pipelines", table(("pipeline", "passes", ""), _pipeline_rows())]
    parts += [
        "## Conditions (`when:`)",
        table(("condition", "takes", "holds when"), _condition_rows()),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(pass_class: type[ModulePass]) -> str:
    """The first paragraph of a pass's documentation, in one line."""
    return inspect.cleandoc(pass_class.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def errors_page() -> str:
    """The explanations of all error codes, by family."""
    parts = [NOTE, "# Errors", "`hloopt explain CODE` shows each of these on the terminal."]
    explanations = [explain(code) for code in codes()]
    for family, members in groupby(filter(None, explanations), lambda e: e.family):
        parts.append(f"## {family}")
        parts += [f"##{e.text.rstrip()}" for e in members]
    return "\n\n".join(parts) + "\n"


def selectors_page() -> str:
    """The page as it is, with the table of the keys that there are."""
    page = (ROOT / "docs" / "selectors.md").read_text(encoding="utf-8")
    keys: list[Key | Family] = [*KEYS.values(), *FAMILIES.values()]
    rows = [
        (f"`{key.name}`", " ".join(f"`{o}`" for o in key.kind.operators), key.doc) for key in keys
    ]
    shown = table(("key", "operators", ""), rows)
    return re.sub(r"\| key \|.*?(?=\n\n)", lambda _: shown, page, count=1, flags=re.S)


def expectations_page() -> str:
    """The page as it is, with the tables, groups and units that there are below `## Figures`."""
    page = (ROOT / "docs" / "expectations.md").read_text(encoding="utf-8")
    written, heading, _ = page.partition("## Figures\n")
    parts = [written + heading.rstrip()]
    for each in EXPECTED_TABLES.values():
        own = [(f"`{key.name}`", key.doc) for key in each.vocabulary.own]
        parts.append(f"### {each.name}\n\n{_sentence(each.doc)}")
        if each.vocabulary.instruction is not None:
            parts.append("Keys of [selectors](selectors.md) are those of its instruction, and:")
        parts += [table(("key", ""), own)] if own else []
        parts.append(table(("figure", "is", ""), [_figure_row(m) for m in each.measures]))
    for group in GROUPS.values():
        takes = f" Takes `{'`, `'.join(group.takes)}`." if group.takes else ""
        parts.append(f"### {group.name}\n\n{_sentence(group.doc)}{takes}")
        parts.append(table(("figure", "is", ""), [_figure_row(s) for s in group.scalars]))
    return "\n\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _figure_row(measure: Measure | Attribute | Scalar) -> tuple[str, str, str]:
    if isinstance(measure, Attribute):
        return f"`{measure.name}`", "a text of each", measure.doc
    each = " of each" if isinstance(measure, Measure) and measure.combine is Combine.EACH else ""
    share = "" if measure.whole is None else ", or a share"
    return f"`{measure.name}`", f"{measure.unit.name}{share}{each}", measure.doc


def _pipeline_rows() -> list[tuple[str, ...]]:
    found = [(name, find_pipeline(name)) for name in pipeline_names()]
    return [(f"`{name}`", f"`{format_passes(p.steps)}`", p.description) for name, p in found]


def _condition_rows() -> list[tuple[str, ...]]:
    return [
        (f"`{key}`", condition.kind.title, condition.doc) for key, condition in CONDITIONS.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
