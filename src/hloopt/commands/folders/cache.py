"""`hloopt cache`: results of earlier runs."""

from __future__ import annotations

import click

from hloopt.commands.shared.common import HloCommand, say


@click.command(cls=HloCommand)
@click.option("--clear", is_flag=True, help="remove all results")
def command(clear: bool) -> int:
    """Where results of earlier runs are kept, and how much room they take.

    `dumps` keeps facts of modules, and commands that report on several files keep what they found
    of each. A result counts where all files that were read for it are what they were, byte for
    byte. The oldest are removed where all take more than there is room for. $HLOOPT_CACHE_DIR is
    another place.
    """
    from hloopt.diagnostics import HloError, counted, printable
    from hloopt.files.cache import MOST_BYTES, Cache
    from hloopt.reports.console.units import human_bytes

    cache = Cache()
    entries, size = cache.size()
    if clear:
        try:
            cache.clear()
        except OSError as error:
            why = error.strerror or error
            raise HloError(f"cannot remove {cache.folder}: {why}", code="HLO004") from None
        say(f"removed {counted(entries, 'result')}, {human_bytes(size)}")
        return 0
    print(printable(str(cache.folder)))
    print(f"{counted(entries, 'result')}, {human_bytes(size)} of at most {human_bytes(MOST_BYTES)}")
    return 0
