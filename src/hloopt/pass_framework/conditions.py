"""Conditions on a module that decide whether a step of a pipeline runs (`when:`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hloopt.diagnostics import PipelineError, did_you_mean
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, COLLECTIVES, OPCODES, Opcode
from hloopt.pass_framework.options import value_text

_ASYNC_COLLECTIVES = frozenset(
    opcode for opcode in COLLECTIVES | ASYNC if opcode.endswith(("-start", "-done"))
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One key of `when`: what it means, the type of its value, and how to find out."""

    doc: str
    type: type
    holds: Callable[[Module, object], bool]


def _has(module: Module, opcodes: frozenset[Opcode]) -> bool:
    return any(instruction.opcode in opcodes for instruction in module.instructions())


def _has_any_named(module: Module, names: object) -> bool:
    assert isinstance(names, list)
    return _has(module, frozenset(OPCODES[name] for name in names))


def _is_at_least(module: Module, number: object) -> bool:
    assert isinstance(number, int)
    return module.instruction_count() >= number


CONDITIONS: dict[str, Condition] = {
    "is_scheduled": Condition(
        "the module has a schedule", bool, lambda module, want: module.is_scheduled is want
    ),
    "has_calls": Condition(
        "there are call instructions",
        bool,
        lambda module, want: _has(module, frozenset((Opcode.CALL,))) is want,
    ),
    "has_loops": Condition(
        "there are while loops",
        bool,
        lambda module, want: _has(module, frozenset((Opcode.WHILE,))) is want,
    ),
    "has_collectives": Condition(
        "there are collectives, asynchronous or not",
        bool,
        lambda module, want: _has(module, COLLECTIVES) is want,
    ),
    "has_async_collectives": Condition(
        "there are asynchronous collectives",
        bool,
        lambda module, want: _has(module, _ASYNC_COLLECTIVES) is want,
    ),
    "has_opcode": Condition("an instruction has one of these opcodes", list, _has_any_named),
    "min_instructions": Condition("there are at least this many instructions", int, _is_at_least),
}
"""Every condition a step can have, by its key."""


def check_condition(key: str, value: object) -> None:
    """Raise PipelineError for an unknown condition or a value of the wrong type."""
    condition = CONDITIONS.get(key)
    if condition is None:
        raise PipelineError(
            f"unknown condition '{key}'",
            help=did_you_mean(key, CONDITIONS) or f"conditions: {', '.join(CONDITIONS)}",
            code="HLO607",
        )
    if type(value) is not condition.type:
        kinds = {bool: "true or false", int: "an integer", list: "a list of opcodes"}
        raise PipelineError(
            f"condition '{key}' takes {kinds[condition.type]}, not {value_text(value)}",
            code="HLO607",
        )
    for name in value if isinstance(value, list) else ():
        if not isinstance(name, str) or name not in OPCODES:
            raise PipelineError(
                f"unknown opcode {value_text(name)}",
                help=did_you_mean(str(name), OPCODES),
                code="HLO607",
            )


def unmet_condition(module: Module, when: Mapping[str, object]) -> str | None:
    """The first condition that does not hold, as text; None where all do."""
    for key, value in when.items():
        if not CONDITIONS[key].holds(module, value):
            return f"{key}: {str(value).lower() if isinstance(value, bool) else value}"
    return None
