"""`hloopt extract`: a part of a module as a module of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand

if TYPE_CHECKING:
    from hloopt.ir.computation import Computation
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("file", shell_complete=completion.files)
@click.argument("names", nargs=-1, metavar="%NAME|COMPUTATION…")
@click.option("--scope", metavar="OP_NAME", help="the instructions whose op_name begins with this")
@click.option(
    "--depth",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="so many steps of operands as well",
)
@click.option(
    "--users",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="so many steps of users as well",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    default="-",
    help="where to write; default: stdout",
    shell_complete=completion.files,
)
def command(
    file: str, names: tuple[str, ...], scope: str | None, depth: int, users: int, output: str
) -> int:
    """Extract instructions, or a computation with all it calls, as a module that runs.

    Parameters stand for what is left out; results are the values that something left out used.
    Instructions with a % or without; all of one computation. --depth 99 takes all that they
    depend on.

    \b
    hloopt extract step.hlo %fusion.12 -o fusion.hlo
    hloopt extract step.hlo %all-gather.3 --depth 2 --users 1
    hloopt extract step.hlo while_body -o body.hlo
    hloopt extract step.hlo --scope jit(step)/transformer/layer_0/attention
    """
    if bool(names) == (scope is not None):
        raise click.UsageError("name instructions or a computation, or give --scope OP_NAME")
    from hloopt.files import load, save, write_whole
    from hloopt.text import print_module

    module = load(file)
    _extract(module, names, scope, depth, users)
    if output == "-":
        write_whole(output, print_module(module))
    else:
        save(module, output)
    return 0


def _extract(
    module: Module, names: tuple[str, ...], scope: str | None, depth: int, users: int
) -> None:
    from hloopt.ir.find import in_scope
    from hloopt.reduction.extraction import (
        extract_computation,
        extract_instructions,
    )

    computation = _named_computation(module, names[0]) if len(names) == 1 else None
    if computation is not None:
        if depth or users:
            raise click.UsageError("--depth and --users are steps from instructions")
        extract_computation(module, computation)
        return
    chosen = in_scope(module, scope) if scope is not None else [module[name] for name in names]
    extract_instructions(module, chosen, depth=depth, users=users)


def _named_computation(module: Module, name: str) -> Computation | None:
    """The computation of a name; behind % an instruction of that name comes first.

    Raises HloError for a name that is near to that of a computation and to no instruction's.
    """
    from hloopt.diagnostics import HloError, did_you_mean

    plain = name.removeprefix("%")
    computation = module.computations.get(plain)
    instructions = {instruction.name for instruction in module.instructions()}
    if computation is not None:
        return None if name.startswith("%") and plain in instructions else computation
    if plain not in instructions and did_you_mean(plain, instructions) is None:
        hint = did_you_mean(plain, module.computations)
        if hint is not None:
            raise HloError(f"no instruction or computation '{plain}' in the module", help=hint)
    return None
