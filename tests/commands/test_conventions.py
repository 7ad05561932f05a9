"""What commands have in common: names of options, JSON, exit codes."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from hloopt.cli import cli


def commands() -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups too."""
    waiting: list[tuple[str, click.Command]] = [("hloopt", cli)]
    while waiting:
        path, command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                waiting.append((f"{path} {name}", inner))
        else:
            yield path, command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_options_have_one_name_for_one_thing(path: str) -> None:
    options = {name: p for p in COMMANDS[path].params for name in p.opts if name.startswith("--")}
    assert not options.keys() & {"--top", "--max-rows", "--rows", "--json", "--no-color"}
    if "--limit" in options:
        limit = options["--limit"]
        assert isinstance(limit, click.Option)
        assert isinstance(limit.type, click.IntRange)
        assert limit.show_default
        assert (limit.help or "").endswith("JSON has all")
