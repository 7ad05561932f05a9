"""`hloopt verify`: check modules against the rules of HLO."""

from __future__ import annotations

import sys

import click

from hloopt.commands.common import HloCommand, format_option, print_json
from hloopt.diagnostics import HloError, render_error


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--split-input-file", is_flag=True, help="each file holds modules between // -----")
@format_option
def command(files: tuple[str, ...], split_input_file: bool, output_format: str) -> int:
    """Check modules; exit 1 if one breaks a rule, 2 if one cannot be read.

    All problems of a module are reported, each with its place.
    """

    from hloopt.files import find_inputs, read_module, read_source
    from hloopt.split import split_source
    from hloopt.text import parse_module
    from hloopt.verifier import verify_module

    found: list[tuple[str, HloError]] = []
    exit_code = 0
    paths = find_inputs(files)
    for path in paths:
        try:
            chunks = split_source(read_source(path)).chunks if split_input_file else [path]
            for chunk in chunks:
                module = read_module(chunk) if isinstance(chunk, str) else parse_module(chunk)
                errors = verify_module(module)
                exit_code = max(exit_code, 1 if errors else 0)
                found += [(path, error) for error in errors]
        except HloError as error:
            exit_code = 2
            found.append((path, error))
    if output_format == "json":
        print_json([_to_json(path, problem) for path, problem in found])
        return exit_code
    for _, problem in found:
        print(render_error(problem), file=sys.stderr)
    files_text = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    problems = "no problem" if not found else f"{len(found)} problems" if found[1:] else "1 problem"
    print(f"{problems} in {files_text}", file=sys.stderr)
    return exit_code


def _to_json(path: str, error: HloError) -> dict[str, object]:
    line, column = error.location or (None, None)
    return {
        "file": path,
        "line": line,
        "column": column,
        "message": error.message,
        "help": error.help,
    }
