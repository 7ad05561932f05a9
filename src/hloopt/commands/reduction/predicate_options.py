"""The options of `reduce` and `bisect` that say which failure is looked for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, parse_time
from hloopt.commands.shared.compiler_options import flag_option, plugin_option, target_option

if TYPE_CHECKING:
    from hloopt.reduction.outcomes import Predicate
    from hloopt.reduction.trials import TimeLimit

_ONE_OF = (
    "test",
    "pass_fails",
    "pass_changes_result",
    "remark",
    "differs_on",
    "xla_crashes",
    "xla_flags_differ",
    "report",
    "verify_error",
)
"""The options that are predicates by themselves."""
_FIRST_LIMIT = 300.0
"""Seconds for the first trial, unless somebody says otherwise."""


_FAILURES = (
    click.option(
        "--test",
        metavar="COMMAND",
        help="a command for sh, {} is the file: exit code 0 shows it, 125 cannot tell",
    ),
    click.option(
        "--grep", metavar="REGEX", help="with --test: a match in its output shows it instead"
    ),
    click.option(
        "--pass-fails",
        metavar="PIPELINE",
        help="a pass fails: name a pipeline, or spell passes as in --passes",
        shell_complete=completion.pass_text,
    ),
    click.option(
        "--pass-changes-result",
        metavar="PIPELINE",
        help="a pass changes what the module computes, as --validate each finds",
        shell_complete=completion.pass_text,
    ),
    click.option(
        "--remark",
        metavar="KIND:PASS:REGEX",
        help="a pass makes a remark (applied, missed, analysis) that matches",
        shell_complete=completion.remark_kinds,
    ),
    click.option(
        "--differs-on",
        type=click.Choice(["xla"]),
        help="interpreter and XLA:CPU give different results",
    ),
    click.option(
        "--xla-crashes",
        metavar="TARGET",
        help="XLA dies of it, or refuses it, compiling for a target: cpu, h100_sxm (hloopt xla)",
        shell_complete=completion.targets,
    ),
    click.option(
        "--xla-flags-differ",
        nargs=2,
        metavar="FLAGS FLAGS",
        help="XLA's results differ under two sets of flags: '' 'xla_NAME=VALUE xla_NAME=VALUE'",
    ),
    click.option(
        "--report", metavar="EXPECTATION", help="an expectation holds, as in hloopt expect"
    ),
    click.option(
        "--verify-error",
        metavar="CODE",
        help="the verifier reports this error code: HLO203",
        shell_complete=completion.codes,
    ),
)
"""The options that say which failure."""
_SETTINGS = (
    flag_option("with --xla-crashes: a flag of XLA"),
    plugin_option("with --xla-…: the compiler for GPUs, as in hloopt xla"),
    target_option(
        "with --xla-flags-differ: default cpu, whose results XLA runs; the interpreter runs others"
    ),
    click.option(
        "-p",
        "--pipeline",
        metavar="NAME",
        help="the pipeline that --remark is about; default: its pass alone",
        shell_complete=completion.pipelines,
    ),
    click.option(
        "--passes",
        metavar="TEXT",
        help="or passes as text",
        shell_complete=completion.pass_text,
    ),
    click.option(
        "--hangs",
        metavar="TIME",
        callback=parse_time,
        help="not to end for so long is the failure: 10s",
    ),
    click.option(
        "--time-limit",
        metavar="TIME",
        callback=parse_time,
        help="a trial that takes longer does not show it; default: ten times what FILE takes",
    ),
)
"""The options that say of which pipeline, and how long a trial takes."""


def predicate_options(command: Function) -> Function:
    """The options of predicates, for `predicate_of` and `time_limit_of`."""
    for option in reversed((*_FAILURES, *_SETTINGS)):
        command = option(command)
    return command


def predicate_of(options: dict[str, Any], path: str) -> Predicate | None:
    """The predicate that options ask for; None where they ask for none.

    Raises UsageError for several, and HloError for what is malformed: before anything runs.
    """
    given = [name for name in _ONE_OF if options[name] is not None]
    if len(given) > 1:
        raise click.UsageError(f"one failure at a time: {_names(given)} are several")
    if options["grep"] is not None and given != ["test"]:
        raise click.UsageError("--grep needs --test COMMAND, whose output it looks at")
    if options["flags"] and given != ["xla_crashes"]:
        raise click.UsageError("--flag is about --xla-crashes TARGET")
    if options["target"] is not None and given != ["xla_flags_differ"]:
        raise click.UsageError("--target is about --xla-flags-differ FLAGS FLAGS")
    if not given:
        return None
    made = _MAKERS[given[0]](options, path)
    _check(made)
    return made


def pipeline_text(options: dict[str, Any]) -> str | None:
    """The pipeline of -p or --passes."""
    if options["pipeline"] is not None and options["passes"] is not None:
        raise click.UsageError("-p and --passes: give one of them")
    chosen: str | None = options["pipeline"] or options["passes"]
    return chosen


def time_limit_of(options: dict[str, Any]) -> TimeLimit:
    """The time limit of a trial."""
    from hloopt.reduction.trials import TimeLimit

    if options["hangs"] is not None and options["time_limit"] is not None:
        raise click.UsageError("--hangs is a time limit itself: leave --time-limit out")
    if options["hangs"] is not None:
        return TimeLimit(options["hangs"], is_shown=True)
    return TimeLimit(options["time_limit"] or _FIRST_LIMIT)


def _names(given: list[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in given)


def _check(predicate: Predicate) -> None:
    """Raise what is wrong about a pipeline or an expectation, before anything runs."""
    from hloopt.pass_framework.library import pipeline_of
    from hloopt.reduction.predicates.modules import ExpectationHolds
    from hloopt.reduction.predicates.passes import PassPredicate

    if isinstance(predicate, PassPredicate):
        pipeline_of(predicate.passes)
    elif isinstance(predicate, ExpectationHolds):
        from hloopt.checks.expectations.grammar import parse_expectation

        parse_expectation(predicate.expression)


def _command(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.reduction.predicates.commands import CommandShows

    grep = options["grep"]
    if grep is not None:
        _check_pattern(grep, "--grep")
    name = "module.hlo" if path == "-" else _plain_name(os.path.basename(path))
    return CommandShows(options["test"], name, grep)


def _plain_name(name: str) -> str:
    """A name for the texts of candidates, which are not packed."""
    stem, ending = os.path.splitext(name)
    while ending in (".gz", ".zst", ".xz", ".bz2", ".pb", ".pbtxt"):
        name = stem
        stem, ending = os.path.splitext(name)
    return name if ending else f"{name}.hlo"


def _failing(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.reduction.predicates.passes import PassFails

    return PassFails(options["pass_fails"])


def _changing(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.reduction.predicates.passes import PassChangesResult

    return PassChangesResult(options["pass_changes_result"])


def _remarking(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.pass_framework.registry import find_pass
    from hloopt.reduction.predicates.passes import PassRemarks

    kind, _, rest = options["remark"].partition(":")
    name, _, pattern = rest.partition(":")
    if kind not in completion.REMARK_KINDS or not name:
        raise click.BadParameter(
            f"'{options['remark']}' is not KIND:PASS:REGEX; "
            f"kinds are {', '.join(completion.REMARK_KINDS)}",
            param_hint="--remark",
        )
    _check_pattern(pattern, "--remark")
    found = find_pass(name).name
    return PassRemarks(pipeline_text(options) or found, kind, found, pattern)


def _differing(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.reduction.predicates.engines import DiffersOnXla

    return DiffersOnXla()


def _crashing(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.compilers.compiling import Compiler, check_flags
    from hloopt.reduction.predicates.compilers import CompilerFails

    check_flags(options["flags"])
    Compiler.named(options["xla_crashes"], options["plugin"])  # a mistake is told at once
    return CompilerFails(options["xla_crashes"], options["flags"], options["plugin"])


def _differing_by_flags(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.compilers.compiling import Compiler
    from hloopt.compilers.flags import Flags
    from hloopt.reduction.predicates.engines import FlagsDiffer

    first, second = (Flags.of(text.split()) for text in options["xla_flags_differ"])
    if first.text() == second.text():
        raise click.UsageError("--xla-flags-differ: the flags are the same")
    target = options["target"] or "cpu"
    Compiler.named(target, options["plugin"])  # a mistake is told at once
    plugin = None if target == "cpu" else options["plugin"]
    return FlagsDiffer(tuple(first.texts()), tuple(second.texts()), target, plugin)


def _reporting(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.reduction.predicates.modules import ExpectationHolds

    return ExpectationHolds(options["report"])


def _breaking(options: dict[str, Any], path: str) -> Predicate:
    from hloopt.diagnostics import did_you_mean
    from hloopt.explanations import codes
    from hloopt.reduction.predicates.modules import BreaksRule

    code = options["verify_error"].upper()
    if code not in codes():
        hint = did_you_mean(code, codes()) or "`hloopt explain` lists all codes"
        raise click.BadParameter(f"no code '{code}'; {hint}", param_hint="--verify-error")
    return BreaksRule(code)


def _check_pattern(pattern: str, option: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(
            f"'{pattern}' is not a regular expression: {error}", param_hint=option
        ) from None


_MAKERS: dict[str, Callable[[dict[str, Any], str], Predicate]] = {
    "test": _command,
    "pass_fails": _failing,
    "pass_changes_result": _changing,
    "remark": _remarking,
    "differs_on": _differing,
    "xla_crashes": _crashing,
    "xla_flags_differ": _differing_by_flags,
    "report": _reporting,
    "verify_error": _breaking,
}
