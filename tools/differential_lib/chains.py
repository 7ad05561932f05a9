"""Random chains of passes: all registered passes, with options drawn by their types."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from hloopt.diagnostics import HloError
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.pass_framework.options import OptionInfo, option_infos
from hloopt.pass_framework.registry import PASSES, create_pass, find_pass

LONGEST = 5

LEFT_OUT = {
    ("dce", "remove_dead_parameters_from_entry_computation"): "other parameters are not compared",
    ("double-buffer-loop-unrolling", "loops"): "names of instructions",
    ("all-reduce-to-reduce-scatter", "names"): "names of instructions",
    ("collective-splitter", "names"): "names of instructions",
    ("collective-uncombiner", "names"): "names of instructions",
    ("synchronize-collectives", "names"): "names of instructions",
    ("while-loop-residual-offloader", "names"): "names of instructions",
    ("latency-hiding-scheduler", "search"): "takes seconds, and orders only",
    ("latency-hiding-scheduler", "profile"): "the name of a file",
    ("latency-hiding-scheduler", "cost_table"): "the name of a file",
    ("latency-hiding-scheduler", "collective_perf_table"): "the name of a file",
    ("latency-hiding-scheduler", "matmul_perf_table"): "the name of a file",
    ("latency-hiding-scheduler", "smooth_tables"): "needs a target",
    ("latency-hiding-scheduler", "target"): "times only, and some lack what others ask for",
    ("latency-hiding-scheduler", "explain"): "names of instructions, a report only",
    ("latency-hiding-scheduler", "log_computation_re"): "a report only",
}
"""Options that are never set, and why."""

OWN_SWEEPS = dict.fromkeys(("memory-search", "overlap-search"), "overlap_fuzz.py")
"""Passes that are not in chains, since they take seconds, and the tools that try them."""

_BEFORE = {
    **dict.fromkeys(
        (
            *("convert-async-collectives-to-sync", "gpu-convert-async-collectives-to-sync"),
            *("latency-hiding-scheduler", "scheduler-memory-fencing"),
        ),
        ("hlo-memory-scheduler", "hlo-trivial-scheduler"),
    ),
    **dict.fromkeys(
        ("copy-insertion", "remove-unnecessary-copies", "add-special-case-copies"),
        ("flatten-call-graph",),
    ),
}
"""Passes that want another before them: a schedule, or a computation for each call site."""

_WANTED = {
    "async-collective-creator": ("convert_",),
    "call-splitter": ("boundary",),
    "collective-pipeliner": ("should_process", "pipelining_direction"),
    "collective-permute-decomposer": ("pipeline_parallelism_opt_level",),
    "scheduler-memory-fencing": ("threshold_bytes",),
    "while-loop-residual-offloader": ("min_size",),
}
"""Beginnings of options without which a pass has little to do: set three times in four."""

_NEEDED = {"rematerialization": ("memory_limit_bytes", (0, 64, 1000))}
"""An option without which a pass does not run, and values of it."""

_OPCODES = (
    *(opcode for opcode in sorted(COLLECTIVES) if not opcode.endswith(("-start", "-done"))),
    *(Opcode.ADD, Opcode.NEGATE, Opcode.MULTIPLY, Opcode.DYNAMIC_SLICE, Opcode.COPY, Opcode.DOT),
    *(Opcode.BITCAST, Opcode.GET_TUPLE_ELEMENT, Opcode.RESHAPE, Opcode.CONSTANT),
)
_NUMBERS = (0, 1, 2, 3, 4, 16, 64, 300, 1000)
_WORDS = {"target": ("a100_sxm_80", "cpu", "h100_sxm")}
"""Values of options whose words mean something; targets that have native types."""


class Step(NamedTuple):
    """One pass of a chain."""

    name: str
    options: dict[str, object]

    def __str__(self) -> str:
        """As `--passes` takes it."""
        said = ",".join(f"{key}={_text(value)}" for key, value in self.options.items())
        return f"{self.name}{{{said}}}" if said else self.name


def chain(dice: random.Random, only: str | None = None) -> list[Step]:
    """One to five passes, or `only` one, and what they want before them."""
    steps: list[Step] = []
    for _ in range(1 if only else dice.randint(1, LONGEST)):
        name = only or dice.choice(_names())
        if name in _BEFORE and dice.random() < 0.8:
            steps.append(_step(dice, dice.choice(_BEFORE[name]), plain=0.8))
        steps.append(_step(dice, name))
        if name == "collective-permute-decomposer" and dice.random() < 0.3:
            steps.append(_step(dice, "latency-hiding-scheduler-preparation"))
    return steps


@lru_cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(PASSES.keys() - OWN_SWEEPS.keys()))


def _step(dice: random.Random, name: str, plain: float = 0.35) -> Step:
    """A pass with random options; with a share of `plain`, only those it needs."""
    share = 0.0 if dice.random() < plain else dice.choice((0.05, 0.1, 0.3, 0.6))
    wanted = _WANTED.get(name, ())
    needed: dict[str, object] = {}
    if name in _NEEDED:
        option, values = _NEEDED[name]
        needed[option] = dice.choice(values)
    options: dict[str, object] = {}
    for info in option_infos(find_pass(name)):
        if (name, info.name) in LEFT_OUT or info.is_api_only:
            continue
        if dice.random() > (0.75 if wanted and info.name.startswith(wanted) else share):
            continue
        value = _value(dice, info)
        if value is not None:
            options[info.name] = value
    options |= needed
    try:
        create_pass(name, options)
    except HloError:  # options that do not go together
        return Step(name, needed)
    return Step(name, options)


def _value(dice: random.Random, info: OptionInfo) -> object:
    """A value of an option; None where only a function is one."""
    kinds = [*get_args(info.type)] if not _is_plain(info.type) else [info.type]
    dice.shuffle(kinds)
    for kind in kinds:
        plain = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
        if plain is bool:
            return dice.random() < 0.7
        if plain is int:
            return dice.choice(_NUMBERS)
        if plain is str:
            return dice.choice(_WORDS.get(info.name, ("main",)))
        if get_origin(plain) is Literal:
            return dice.choice(get_args(plain))
        if get_origin(plain) is tuple:
            if get_args(plain)[0] is Opcode:
                return [str(o) for o in dice.sample(_OPCODES, dice.randint(1, len(_OPCODES)))]
            if get_args(plain)[0] is int:
                return dice.choices(_NUMBERS, k=2)
            return dice.choice((["main"], []))
    return None


def _is_plain(kind: Any) -> bool:
    """Whether a type is not a union."""
    return (
        isinstance(kind, type)
        or get_origin(kind) in (Literal, tuple)
        or hasattr(kind, "__metadata__")
    )


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
