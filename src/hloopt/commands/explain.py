"""`hloopt explain`: what an error code means, or what a rule of lint looks for."""

from __future__ import annotations

import sys

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
)
from hloopt.explanations import Explanation, codes, explain, rule_codes


@click.command(cls=HloCommand)
@click.argument("code", required=False, shell_complete=completion.codes)
@format_option
@color_option
def command(code: str | None, output_format: str, color: str) -> int:
    """Explain an error code (HLO101, or just 101) or a rule (HLL003), or list all codes."""
    known = [*codes(), *rule_codes()]
    if code is None:
        found = [_find(each) for each in known]
        if output_format == "json":
            print_json([{"code": e.code, "family": e.family, "title": e.title} for e in found])
        else:
            _list(found, color)
        return 0
    wanted = code.upper() if code.upper().startswith(("HLO", "HLL")) else f"HLO{code}"
    if wanted not in known:
        from hloopt.diagnostics import HloError, did_you_mean

        hint = did_you_mean(wanted, known) or "`hloopt explain` lists all codes"
        raise HloError(f"no code '{code}'", help=hint, code="HLO009")
    explanation = _find(wanted)
    if output_format == "json":
        print_json(explanation._asdict())
    elif sys.stdout.isatty() or color == "always":
        from rich.markdown import Markdown

        make_console(color).print(Markdown(explanation.text))
    else:
        from hloopt.reports.console.prose import wrapped_prose

        click.echo(wrapped_prose(explanation.text, make_console(color).width), nl=False)
    return 0


def _find(code: str) -> Explanation:
    explanation = explain(code)
    assert explanation is not None
    if code in rule_codes():
        from hloopt.checks.lint.pages import page_of

        return explanation._replace(text=page_of(code))
    return explanation


def _list(found: list[Explanation], color: str) -> None:
    from itertools import groupby

    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(heads=False, gap=2)
    table.add_column()
    table.add_column(wraps=True)
    for family, members in groupby(found, _heading):
        table.add_line(Text(family, "bold"))
        for explanation in members:
            table.add_row(f"  {explanation.code}", explanation.title)
    make_console(color).print(table)


def _heading(explanation: Explanation) -> str:
    is_rule = explanation.code in rule_codes()
    return f"Lint: {explanation.family}" if is_rule else explanation.family
