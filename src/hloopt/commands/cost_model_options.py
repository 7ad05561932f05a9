"""The options by which commands let people choose a model of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import click

from hloopt.cost_models import COST_MODELS, CostModelChoice

Command: TypeAlias = Callable[..., int]


def cost_model_options(command: Command) -> Command:
    """`--cost-model NAME` and `--cost-table FILE`, given to the command as `cost_model`."""

    @wraps(command)
    def with_choice(*arguments: Any, model_name: Any, cost_table: str | None, **others: Any) -> int:
        choice = CostModelChoice(name=model_name, cost_table=cost_table)
        return command(*arguments, cost_model=choice, **others)

    result: Command = with_choice
    for option in (
        click.option(
            "--cost-table", metavar="FILE.json", help="times by the names of instructions"
        ),
        click.option(
            "--cost-model",
            "model_name",
            type=click.Choice(COST_MODELS),
            help="how long things take; default: what the file given is for, else fixed",
        ),
    ):
        result = option(result)
    return result
