"""The options by which commands let people choose a model of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import click

from hloopt.cost_models import COST_MODELS, CostModelChoice, CostModelName

Command: TypeAlias = Callable[..., int]


def cost_model_options(
    default: CostModelName | None = None, *, default_target: str | None = None
) -> Callable[[Command], Command]:
    """`--cost-model`, `--target`, `--cost-table` and `--profile`, given as `cost_model`.

    `default`: the model for whoever says nothing of times, if it is not that of `CostModelChoice`.
    `default_target`: the hardware for whoever names none, which makes that model `sol`.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_choice(
            *arguments: Any,
            model_name: Any,
            target: str | None,
            cost_table: str | None,
            profile: str | None,
            **others: Any,
        ) -> int:
            is_said = any((model_name, target, cost_table, profile))
            choice = CostModelChoice(
                name=model_name if is_said else default,
                target=target or default_target,
                cost_table=cost_table,
                profile=profile,
            )
            return command(*arguments, cost_model=choice, **others)

        result: Command = with_choice
        for option in reversed(_options(default or ("sol" if default_target else None))):
            result = option(result)
        return result

    return decorate


def _options(default: CostModelName | None) -> tuple[Callable[[Command], Command], ...]:
    without_file = default or "sol where a target is given, else fixed"
    return (
        click.option(
            "--cost-model",
            "model_name",
            type=click.Choice(COST_MODELS),
            help="how long things take; default: what the file given is for, else " + without_file,
        ),
        click.option(
            "--target", metavar="NAME|FILE.yaml", help="the hardware; h100_sxm if one is needed"
        ),
        click.option(
            "--cost-table", metavar="FILE.json", help="times by the names of instructions"
        ),
        click.option(
            "--profile", metavar="FILE", help="a profile of XLA (PGLE), text proto or JSON"
        ),
    )
