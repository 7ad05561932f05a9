"""`hloopt merge`: put the parts of a run together."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand


@click.command(cls=HloCommand)
@click.argument("parts", nargs=-1, required=True, metavar="PART…", shell_complete=completion.files)
@click.pass_context
def command(ctx: click.Context, parts: tuple[str, ...]) -> int:
    """Write what one run over all files would have written; with its exit code.

    A part is what a command with --shard I/N writes. All N parts are needed, each once, of one
    command line; the files have to lie where they lay. Results are those in the parts. Files are
    listed, and read again only where `dumps` or `fingerprint --same` say in what they differ.

    \b
    for i in 0 1 2; do hloopt stats dumps/ --shard $i/3 > part$i.json & done; wait
    hloopt merge part*.json
    """
    from hloopt.commands.shared.parts import merging, read_parts

    found = read_parts(parts)
    root = ctx.find_root().command
    with merging(found):
        arguments = [*found.command, *found.arguments]
        exit_code = root.main(arguments, prog_name="hloopt", standalone_mode=False)
    return exit_code if isinstance(exit_code, int) else 0
