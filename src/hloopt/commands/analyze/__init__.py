"""`hloopt analyze`: one command per analysis, imported when it runs."""

from __future__ import annotations

import click

from hloopt.commands.shared.common import LazyGroup

COMMANDS: dict[str, str] = {
    "call-graph": "computations, what calls them, and whether each has one call site",
    "loops": "trip counts of while loops, and where they come from",
    "overlap": "what of its collectives a module hides, before and after passes",
    "reachability": "whether one instruction has to run before another, and why",
    "replication": "what is the same on all devices, and what computing it everywhere costs",
}
"""Each command, which is `hloopt.commands.analyze.NAME:command`, with its line in `--help`."""


class _Analyze(LazyGroup):
    commands_of = COMMANDS
    package = "hloopt.commands.analyze"


@click.group(cls=_Analyze)
def command() -> None:
    """Find out what can be known of a module without running it."""
