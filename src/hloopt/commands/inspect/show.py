"""`hloopt show`: an instruction and what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_USAGE,
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    top_option,
)
from hloopt.commands.shared.cost_model_options import cost_model_options

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Computation, Instruction, Module
    from hloopt.reports.console.units import CycleUnit
    from hloopt.reports.neighborhood.details import ModuleDetails
    from hloopt.reports.neighborhood.region import Region


_DEEPEST = 64
"""Steps: each indents the tree further."""


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.argument("name", metavar="[%NAME]", required=False)
@click.option("--up", is_flag=True, help="only what the instruction is computed from")
@click.option("--down", is_flag=True, help="only what is computed from it")
@click.option(
    "--depth",
    type=click.IntRange(1, _DEEPEST),
    default=2,
    show_default=True,
    help="steps away from it",
)
@click.option(
    "--computation", metavar="NAME", help="the computation that has the instruction; or all of it"
)
@click.option("--scope", metavar="OP_NAME", help="all instructions whose op_name begins with this")
@top_option("instructions of a computation or scope", 20)
@cost_model_options
@format_option
@color_option
def command(
    file: str,
    name: str | None,
    up: bool,
    down: bool,
    depth: int,
    computation: str | None,
    scope: str | None,
    top: int,
    cost_model: CostModelChoice,
    output_format: str,
    color: str,
) -> int:
    """Print an instruction, what it is computed from, and what is computed from it.

    Trees of operands and of users, with shapes, bytes, op_name and source line; with --target or
    another model of time the time of one run, and of a module with a schedule the place in it and
    what is alive at the peak. A get-tuple-element or bitcast is no step. Of more than 8 neighbours
    the largest are shown. Exits with 2, and lists them, if several computations have the name.

    Of a computation or scope: what it reads from outside, what it gives, the largest inside.

    \b
    hloopt show step.hlo %fusion.3
    hloopt show step.hlo %all-reduce.1 --up --depth 4 --target h100_sxm
    hloopt show step.hlo --scope 'jit(step)/transformer/layer_0/mlp'
    """
    from hloopt.files import load
    from hloopt.reports.neighborhood.findings import find_neighborhood
    from hloopt.reports.neighborhood.record import neighborhood_to_json, region_to_json
    from hloopt.reports.neighborhood.terminal import render_neighborhood, render_region

    _check(name, computation, scope, is_directed=up or down)
    module = load(file)
    if name is None:
        region = _region(module, computation, scope)
        details, unit = _details(module, cost_model)
        if output_format == "json":
            print_json(region_to_json(region, details, unit))
        else:
            render_region(region, details, unit, make_console(color), top=top)
        return 0
    chosen = _called(module, name.removeprefix("%"), computation)
    if len(chosen) > 1:
        _print_list(chosen, color)
        return EXIT_USAGE
    found = find_neighborhood(chosen[0], depth, up=up or not down, down=down or not up)
    details, unit = _details(module, cost_model)
    if output_format == "json":
        print_json(neighborhood_to_json(found, details, unit))
    else:
        render_neighborhood(found, details, unit, make_console(color))
    return 0


def _check(
    name: str | None, computation: str | None, scope: str | None, *, is_directed: bool
) -> None:
    """Raise UsageError for what cannot be asked together."""
    if name is None and computation is None and scope is None:
        raise click.UsageError("say what to show: %NAME, --computation NAME or --scope OP_NAME")
    if scope is not None and (name is not None or computation is not None):
        raise click.UsageError("--scope goes with neither %NAME nor --computation")
    if name is None and is_directed:
        raise click.UsageError("--up and --down are about an instruction: name one")


def _region(module: Module, computation: str | None, scope: str | None) -> Region:
    from hloopt.reports.neighborhood.region import computation_region, scope_region

    if scope is not None:
        return scope_region(module, scope)
    assert computation is not None  # `_check` saw to that
    return computation_region(_computation(module, computation))


def _computation(module: Module, name: str) -> Computation:
    """Raises HloError if there is none of that name."""
    from hloopt.diagnostics import HloError, did_you_mean
    from hloopt.reports.console.units import some

    found = module.computations.get(name.removeprefix("%"))
    if found is None:
        known = f"computations: {some([f'%{each}' for each in module.computations])}"
        hint = did_you_mean(name.removeprefix("%"), module.computations) or known
        raise HloError(f"no computation '{name}' in the module", help=hint)
    return found


def _called(module: Module, name: str, computation: str | None) -> list[Instruction]:
    """The instructions of a name. Raises HloError if there is none."""
    from hloopt.diagnostics import HloError
    from hloopt.ir.find import called_in_text

    if computation is not None:
        return [_computation(module, computation)[name]]
    if name in module.computations and not any(i.name == name for i in module.instructions()):
        raise HloError(f"%{name} is a computation", help=f"say --computation {name}")
    return list(called_in_text(module, name)) or [module[name]]


def _print_list(chosen: list[Instruction], color: str) -> None:
    """Say that several instructions are meant, and which."""
    console = make_console(color, stderr=True)
    name = chosen[0].parent.module.read_names.get(chosen[0], chosen[0].name)
    console.print(f"several computations have %{name}; name one with --computation:")
    for each in chosen:
        console.print(f"  %{each.name} in %{each.parent.name}", soft_wrap=True)


def _details(module: Module, cost_model: CostModelChoice) -> tuple[ModuleDetails, CycleUnit | None]:
    """The details of instructions with what is asked for and known; the unit of times if any."""
    from hloopt.reports.neighborhood.details import ModuleDetails

    alive = times = unit = None
    if module.is_scheduled:
        from hloopt.reports.memory.model import alive_at_peak

        alive = alive_at_peak(module)
    if cost_model.is_choice:
        from hloopt.reports.schedule.run import cycle_unit, run_times

        times = run_times(module, cost_model)
        unit = cycle_unit(times)
    return ModuleDetails(module, times, alive), unit
