"""The options by which commands let people choose a model of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import click

from hloopt.commands.shared import completion
from hloopt.cost_models import COST_MODELS, CostModelChoice

Command: TypeAlias = Callable[..., int]
Function = TypeVar("Function", bound=Callable[..., Any])


def cost_model_options(command: Command) -> Command:
    """`--cost-model`, `--target`, `--cost-table`, `--profile`, the tables of measurements and
    `--smooth-tables`, given as `cost_model`."""

    @wraps(command)
    def with_choice(
        *arguments: Any,
        model_name: Any,
        **options: Any,
    ) -> int:
        own = {name: options.pop(name) for name in _FIELDS}
        choice = CostModelChoice(name=model_name, **own)
        return command(*arguments, cost_model=choice, **options)

    result: Command = with_choice
    for option in reversed(_OPTIONS):
        result = option(result)
    return result


def preset_option(command: Function) -> Function:
    """`--preset xla-gpu|xla-generic`."""
    return click.option(
        "--preset",
        type=click.Choice(["xla-gpu", "xla-generic"]),
        help="the scheduler whose streams and overlap limits hold; default: the module tells",
    )(command)


_OPTIONS = (
    click.option(
        "--cost-model",
        "model_name",
        type=click.Choice(COST_MODELS),
        help="the model of time; default: that of the file given, else with --target sol, or "
        "roofline where the target lacks the figures of sol, else fixed, in abstract cycles",
    ),
    click.option(
        "--target",
        metavar="NAME|FILE.yaml",
        help="the hardware: `hloopt targets` lists it; there is no default",
        shell_complete=completion.targets,
    ),
    click.option(
        "--cost-table",
        metavar="FILE.json",
        help="times by the names of instructions",
        shell_complete=completion.files,
    ),
    click.option(
        "--profile",
        metavar="FILE",
        help="a profile of XLA (PGLE), text proto or JSON",
        shell_complete=completion.files,
    ),
    click.option(
        "--collective-perf-table",
        metavar="FILE",
        help="measured collectives for the model sol in place of XLA's, as XLA's flag takes them: "
        "DeviceHloInstructionProfiles, text proto or JSON",
        shell_complete=completion.files,
    ),
    click.option(
        "--matmul-perf-table",
        metavar="FILE",
        help="measured matrix products for the model sol in place of XLA's, in the same form",
        shell_complete=completion.files,
    ),
    click.option(
        "--smooth-tables",
        is_flag=True,
        help="make times that the model sol takes from tables of measurements monotone in size; "
        "XLA does not",
    ),
)
_FIELDS = tuple(field.name for field in fields(CostModelChoice) if field.name != "name")
