"""The chain of passes of one compilation, from the dumps of it: a table, a difference, a track."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared.common import EXIT_USAGE, Function, make_console, print_json, say

if TYPE_CHECKING:
    from hloopt.dumps.chain import Chain
    from hloopt.dumps.folder import Compilation
    from hloopt.dumps.gather import Gatherer
    from hloopt.dumps.logs import Times


def chain_options(command: Function) -> Function:
    """`--all`, `--show`, `--diff` and `--track`, as `show_chain` takes them."""
    for option in reversed(
        (
            click.option("--all", "shows_all", is_flag=True, help="all dumps of the passes"),
            click.option(
                "--show",
                "show_of",
                metavar="PASS",
                help="the module behind a pass; algsimp#2, or the number of a dump",
            ),
            click.option(
                "--diff",
                "diff_of",
                metavar="PASS",
                help="what a pass changed; algsimp#2, or the number of a dump",
            ),
            click.option(
                "--track",
                metavar="%NAME|OP_NAME",
                help="which pass made, changed, fused or removed an operation",
            ),
        )
    ):
        command = option(command)
    return command


def show_chain(
    compilation: Compilation, gatherer: Gatherer, options: dict[str, Any], times: Times | None
) -> int:
    """Print what the options ask for of a compilation; the exit code. Raises HloError."""
    from hloopt.dumps.chain import Chain, chain_to_json

    chain = Chain.of(compilation, gatherer)
    is_json = options["output_format"] == "json"
    if options["show_of"] is not None:
        _show_module(chain.find(options["show_of"]).path)
        return 0
    if options["diff_of"] is not None:
        return _show_diff(chain, options)
    if options["track"] is not None:
        from hloopt.dumps.tracking import track, tracks_to_json

        events = track(chain, options["track"])
        if is_json:
            print_json(tracks_to_json(events))
        else:
            from hloopt.dumps.chain_terminal import render_track

            render_track(events, make_console(options["color"]))
        return 0
    if is_json:
        print_json(chain_to_json(chain, times))
    else:
        from hloopt.dumps.chain_terminal import render_chain

        shows_all = options["shows_all"]
        render_chain(chain, make_console(options["color"]), shows_all=shows_all, times=times)
    return EXIT_USAGE if any(step.facts is None for step in chain.steps) else 0


def _show_module(path: str) -> None:
    """Print a dump as it is, of a proto the text."""
    from hloopt.diagnostics import Source
    from hloopt.files.reading import read_text_or_module
    from hloopt.text import print_module

    found = read_text_or_module(path)
    click.echo(found.text if isinstance(found, Source) else print_module(found), nl=False)


def _show_diff(chain: Chain, options: dict[str, Any]) -> int:
    """As `hloopt diff` shows the dumps before and after a pass."""
    from hloopt.commands.diff import show_difference

    step = chain.find(options["diff_of"])
    before = chain.steps[step.number - 1]
    say(f"before: {before.path}")
    say(f"after:  {step.path}")
    return show_difference(
        before.path, step.path, options["output_format"], options["color"], top=options["top"]
    )
