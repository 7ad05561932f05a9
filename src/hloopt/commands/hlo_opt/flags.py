"""Flags of XLA on the command line, in `XLA_FLAGS` and in files of debug options."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hloopt.compilers.debug_options import parse_debug_options
from hloopt.diagnostics import HloError, did_you_mean

_LOGGING = frozenset(
    ("alsologtostderr", "logtostderr", "minloglevel", "stderrthreshold", "v", "vmodule")
)
"""Flags of XLA's logging, which change no output that a test reads."""


class PassOption(NamedTuple):
    """The option of passes that a flag sets; `option` is empty where hloopt has none."""

    passes: tuple[str, ...]
    option: str = ""


_SCHEDULER = ("latency-hiding-scheduler",)
PASS_OPTIONS: Mapping[str, PassOption] = {
    "xla_gpu_all_gather_combine_threshold_bytes": PassOption(
        ("all-gather-combiner", "gpu-all-gather-combiner"), "combine_threshold_in_bytes"
    ),
    "xla_gpu_all_reduce_combine_threshold_bytes": PassOption(
        ("all-reduce-combiner", "gpu-all-reduce-combiner"), "combine_threshold_in_bytes"
    ),
    "xla_gpu_dot_merger_threshold_mb": PassOption(("dot-merger",)),
    "xla_gpu_enable_pipelined_all_gather": PassOption(("collective-pipeliner",)),
    "xla_gpu_enable_pipelined_all_reduce": PassOption(("collective-pipeliner",)),
    "xla_gpu_enable_pipelined_collectives": PassOption(("collective-pipeliner",)),
    "xla_gpu_enable_pipelined_reduce_scatter": PassOption(("collective-pipeliner",)),
    "xla_gpu_experimental_parallel_async_compute_limit": PassOption(
        _SCHEDULER, "parallel_async_compute_limit"
    ),
    "xla_gpu_experimental_parallel_collective_overlap_limit": PassOption(
        _SCHEDULER, "parallel_collective_overlap_limit"
    ),
    "xla_gpu_memory_limit_slop_factor": PassOption(_SCHEDULER, "memory_limit_slop_factor"),
    "xla_gpu_pgle_accuracy_checker": PassOption(_SCHEDULER, "pgle_accuracy_checker"),
    "xla_gpu_pgle_profile_file_or_directory_path": PassOption(_SCHEDULER, "profile"),
    "xla_gpu_reduce_scatter_combine_threshold_bytes": PassOption(
        ("reduce-scatter-combiner", "gpu-reduce-scatter-combiner"), "combine_threshold_in_bytes"
    ),
}
"""The flags that concern passes. One that concerns none that runs has no effect, as in XLA."""

DUMPS = ("xla_dump_to", "xla_dump_hlo_pass_re", "xla_dump_large_constants")
KNOWN = (*PASS_OPTIONS, *DUMPS)

Flags = dict[str, str]


def split_flags(words: Sequence[str]) -> tuple[list[str], Flags]:
    """The words that are no flags of XLA, and the flags, by name; one without a value is "true"."""
    others: list[str] = []
    flags: Flags = {}
    for word in words:
        name, equals, value = word.partition("=")
        bare = name.lstrip("-")
        if not word.startswith("-") or not (bare.startswith("xla_") or bare in _LOGGING):
            others.append(word)
        elif bare not in _LOGGING:
            flags[bare] = value if equals else "true"
    return others, flags


def all_flags(given: Flags, debug_options: str | None, *, are_known: bool = True) -> Flags:
    """The flags of a file of debug options, over them those of `XLA_FLAGS`, then those given.

    Raises HloError for a flag that is not known, unless XLA itself is to know them.
    """
    found = {} if debug_options is None else _read_debug_options(debug_options)
    try:
        words = shlex.split(os.environ.get("XLA_FLAGS", ""))
    except ValueError as error:
        raise HloError(f"XLA_FLAGS cannot be read: {error}") from None
    _, of_environment = split_flags(words)
    flags = {**found, **of_environment, **given}
    return {_known(name): value for name, value in flags.items()} if are_known else flags


def pass_options(passes: Iterable[str], flags: Flags) -> dict[str, dict[str, str]]:
    """The options of these passes that flags set. Raises HloError for a flag that cannot."""
    found: dict[str, dict[str, str]] = {}
    names = set(passes)
    for flag, value in flags.items():
        concerned = PASS_OPTIONS.get(flag)
        if concerned is None:
            continue
        for name in names.intersection(concerned.passes):
            if not concerned.option:
                raise HloError(
                    f"--{flag} sets no option of {name} here",
                    help=f"give the options themselves: hloopt passes {name} lists them",
                )
            found.setdefault(name, {})[concerned.option] = value
    return found


def debug_options_text(flags: Flags) -> str:
    """The flags as XLA writes them into a dump: those of passes, then those of dumps."""
    order = sorted(flags, key=lambda name: (name in DUMPS, KNOWN.index(name)))
    return "".join(f"{name}: {_quoted(flags[name])}\n" for name in order)


def _quoted(value: str) -> str:
    is_plain = value in ("true", "false") or value.lstrip("-").isdecimal()
    return value if is_plain else f'"{value}"'


def _read_debug_options(path: str) -> Flags:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HloError(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}") from None
    return parse_debug_options(text)


def _known(name: str) -> str:
    if name in KNOWN:
        return name
    raise HloError(
        f"hlo-opt does not take --{name}",
        help=did_you_mean(name, KNOWN, prefix="--")
        or "write options of passes behind their names: --passes='cse{is_layout_sensitive=true}'",
    )
