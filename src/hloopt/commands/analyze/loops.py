"""`hloopt analyze loops`: trip counts of while loops."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
    print_titles,
)


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@format_option
@color_option
def command(files: tuple[str, ...], output_format: str, color: str) -> int:
    """The while loops of modules, inner ones below outer ones.

    Trips are computed from the counter, its step and limit, or tried by running condition and
    counter up to 128 times; where neither tells, they are as stated by known_trip_count in the
    backend_config. The counter `#0 = 3, +2, < 10` is element 0 of the state, from 3 up by 2 while
    it is less than 10. Then the size of the state, the instructions of the body, and the
    collectives of a trip, those of inner loops left aside.

    Exits with 1 if a known_trip_count is not the number of trips that body and condition make.
    """
    from hloopt.analysis.stage import Stage
    from hloopt.files import find_inputs, load
    from hloopt.reports.stage_notices import partition_notices, render_notices
    from hloopt.reports.structure.loops import LoopReport, analyze_loops
    from hloopt.reports.structure.loops_terminal import render_loops
    from hloopt.reports.structure.record import loops_to_json

    reports: list[tuple[str, str, tuple[str, ...], list[LoopReport]]] = []
    with at_work(find_inputs(files)) as paths:
        for path in paths:
            module = load(path)
            notices = partition_notices(Stage.of(module))
            reports.append((path, module.name, notices, analyze_loops(module)))
    if output_format == "json":
        print_json(
            [
                {
                    "file": path,
                    "module": name,
                    "notices": list(notices),
                    "loops": loops_to_json(loops),
                }
                for path, name, notices, loops in reports
            ]
        )
    else:
        console = make_console(color)
        found = [(path, (notices, loops)) for path, _, notices, loops in reports]
        for notices, loops in print_titles(console, found, files):
            render_notices(notices, console)
            render_loops(loops, console)
    is_wrong = any(loop.disagrees for *_, loops in reports for loop in loops)
    return EXIT_FOUND if is_wrong else 0
