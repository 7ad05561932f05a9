"""The options by which commands let people choose a model of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import click

from hloopt.cost_models import COST_MODELS, CostModelChoice

Command: TypeAlias = Callable[..., int]
Function = TypeVar("Function", bound=Callable[..., Any])


def cost_model_options(command: Command) -> Command:
    """`--cost-model`, `--target`, `--cost-table` and `--profile`, given as `cost_model`."""

    @wraps(command)
    def with_choice(
        *arguments: Any,
        model_name: Any,
        target: str | None,
        cost_table: str | None,
        profile: str | None,
        **others: Any,
    ) -> int:
        choice = CostModelChoice(
            name=model_name, target=target, cost_table=cost_table, profile=profile
        )
        return command(*arguments, cost_model=choice, **others)

    result: Command = with_choice
    for option in reversed(_OPTIONS):
        result = option(result)
    return result


def preset_option(command: Function) -> Function:
    """`--preset xla-gpu|xla-generic`."""
    return click.option(
        "--preset",
        type=click.Choice(["xla-gpu", "xla-generic"]),
        help="whose streams and overlap limits; default: the module tells",
    )(command)


_OPTIONS = (
    click.option(
        "--cost-model",
        "model_name",
        type=click.Choice(COST_MODELS),
        help="how long things take; default: what the file given is for, else where a target is "
        "given sol, roofline where it has no figures for that, else fixed, in abstract cycles",
    ),
    click.option(
        "--target",
        metavar="NAME|FILE.yaml",
        help="the hardware: `hloopt targets` lists it; there is no default",
    ),
    click.option("--cost-table", metavar="FILE.json", help="times by the names of instructions"),
    click.option("--profile", metavar="FILE", help="a profile of XLA (PGLE), text proto or JSON"),
)
