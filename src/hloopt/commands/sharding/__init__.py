"""`hloopt sharding`: one command per question, imported when it runs."""

from __future__ import annotations

import click

from hloopt.commands.shared.common import LazyGroup

COMMANDS: dict[str, str] = {
    "explain": "which line of the program made each collective, why, and what avoids it",
    "show": "how values are cut over the devices, and what replication costs",
    "what-if": "collectives, bytes, memory and time after XLA partitioned with other shardings",
}
"""Each command, which is `hloopt.commands.sharding.NAME:command`, with its line in `--help`."""


class _Sharding(LazyGroup):
    commands_of = COMMANDS
    package = "hloopt.commands.sharding"


@click.group(cls=_Sharding)
def command() -> None:
    """Explain shardings, and the collectives that the SPMD partitioner made of them."""
