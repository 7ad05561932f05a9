"""`hloopt verify`: check modules against the rules of HLO."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    Function,
    HloCommand,
    format_option,
    print_json,
    say,
)
from hloopt.commands.shared.each_file import many_files_options, map_files
from hloopt.diagnostics import HloError, counted, lost_process, render_error
from hloopt.verifier.option_docs import OptionInfo, option_infos
from hloopt.verifier.options import VerifierOptions


def _verifier_options(command: Function) -> Function:
    """An option per field of `VerifierOptions`, under its name."""
    for info in reversed(list(option_infos())):
        name = "--" + info.name.replace("_", "-")
        if info.type is bool:
            names = f"{name}/--no-{name[2:]}"
            doc = f"{info.doc} (the default)" if info.default else info.doc
            command = click.option(names, default=info.default, help=doc)(command)
        else:
            command = click.option(name, **_value_option(info))(command)
    return command


def _value_option(info: OptionInfo) -> dict[str, Any]:
    if get_origin(info.type) is Literal:
        kind = click.Choice(get_args(info.type))
        return {"type": kind, "default": info.default, "show_default": True, "help": info.doc}
    return {"default": "", "metavar": "OPCODE,…|all", "help": info.doc, "callback": _names}


def _names(
    ctx: click.Context, parameter: click.Parameter, text: str
) -> tuple[str, ...] | Literal["all"]:
    from hloopt.diagnostics import did_you_mean
    from hloopt.ir.opcode import OPCODES

    if text == "all":
        return "all"
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in OPCODES:
            hint = did_you_mean(name, OPCODES)
            raise click.BadParameter(f"there is no opcode '{name}'" + (f"; {hint}" if hint else ""))
    return names


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--split-input-file", is_flag=True, help="each file holds modules between // -----")
@_verifier_options
@many_files_options
@format_option
def command(
    files: tuple[str, ...], split_input_file: bool, jobs: int, output_format: str, **options: Any
) -> int:
    """Check modules; exit 1 if one breaks a rule, 2 if one cannot be read.

    All problems of a module are reported, each with its place.
    """
    from hloopt.files import find_inputs, read_module, read_source
    from hloopt.split import split_source
    from hloopt.text import parse_module
    from hloopt.verifier import verify_module

    verifier_options = VerifierOptions(**options)
    is_json = output_format == "json"

    def check(path: str) -> _Verified:
        errors: list[HloError] = []
        exit_code = 0
        try:
            chunks = split_source(read_source(path)).chunks if split_input_file else [path]
            for chunk in chunks:
                module = read_module(chunk) if isinstance(chunk, str) else parse_module(chunk)
                errors += verify_module(module, verifier_options)
            exit_code = EXIT_FOUND if errors else 0
        except HloError as error:
            errors.append(error)
            exit_code = EXIT_USAGE
        return _Verified.of(path, exit_code, errors, is_json=is_json)

    def lost(path: str) -> _Verified:
        return _Verified.of(path, EXIT_USAGE, [lost_process(path)], is_json=is_json)

    paths = find_inputs(files)
    found: list[Any] = []
    worst = 0
    for exit_code, problems in map_files(_Verified, check, paths, jobs, lost, _is_whole):
        worst = max(worst, exit_code)
        found += problems
        if not is_json:
            for problem in problems:
                print(problem, file=sys.stderr)
    if is_json:
        print_json(found)
        return worst
    problems_text = counted(len(found), "problem") if found else "no problem"
    say(f"{problems_text} in {counted(len(paths), 'file')}")
    return worst


class _Verified(NamedTuple):
    """The fate of one file."""

    exit_code: int
    problems: list[Any]
    """As plain data, or as texts."""

    @classmethod
    def of(
        cls, path: str, exit_code: int, errors: Sequence[HloError], *, is_json: bool
    ) -> _Verified:
        return cls(exit_code, [_to_json(path, e) if is_json else render_error(e) for e in errors])


def _is_whole(verified: _Verified) -> bool:
    return verified.exit_code != EXIT_USAGE


def _to_json(path: str, error: HloError) -> dict[str, object]:
    from hloopt.verifier.report import InstructionError

    line, column = error.location or (None, None)
    span = error.span
    end_line, end_column = span.source.location(span.end) if span else (None, None)
    instruction = error.instruction if isinstance(error, InstructionError) else None
    return {
        "file": path,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "code": error.code,
        "message": error.message,
        "help": error.help,
        "instruction": instruction.name if instruction else None,
        "computation": instruction.parent.name if instruction else None,
    }
