"""The module of a scheduling record before its passes, and the names that a pass gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.records import text_of
from conformance_lib.scheduling.outcome import RunOutcome
from conformance_lib.scheduling.references import find_computation
from hloopt.ir import Module
from hloopt.ir.ordering import post_order
from hloopt.ir.schedule import set_schedule
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def start(fields: Mapping[str, Any]) -> RunOutcome:
    """The module as the passes find it.

    Raises RecordError where a text that has to be valid is not, or a computation is not there.
    """
    module = parse_module(text_of(fields))
    if fields.get("verify_input", True) and (errors := verify_module(module)):
        raise RecordError(f"the text is not valid, and verify_input is not false: {errors[0]}")
    for name, value in fields.get("module_config", {}).items():
        if name != "device_memory_size":  # of the compiler, not of the text
            module.set_attribute(name, str(value))
    if fields.get("initial_schedule") == "post_order":
        orders = {c: post_order(c) for c in module.computations.values() if not c.is_fusion}
        set_schedule(module, orders)
    outcome = RunOutcome(module, {c.name: len(c) for c in module.computations.values()})
    _unschedule(outcome, fields.get("unschedule", ()))
    return outcome


def _unschedule(outcome: RunOutcome, names: list[str]) -> None:
    """Take the schedule of computations: here a module has one for all or none, so they get an
    order that is none, users before operands, and nobody may rely on it."""
    for name in names:
        computation = find_computation(outcome.module, name)
        order = post_order(computation)[::-1]
        computation.reorder(order)
        outcome.unscheduled[name] = order


def check_async_names(module: Module, names: Mapping[str, tuple[str, str]]) -> None:
    """Raise RecordError where an instruction has not become the pair with XLA's names."""
    by_name = {instruction.name: instruction for instruction in module.instructions()}
    for original, pair in names.items():
        if original in by_name:
            raise RecordError(f"async_names: %{original} was not made asynchronous")
        if missing := [name for name in pair if name not in by_name]:
            raise RecordError(f"async_names: there is no %{missing[0]} for %{original}")
        begin, end = (by_name[name] for name in pair)
        if begin not in end.operands or not begin.opcode.endswith("-start"):
            raise RecordError(f"async_names: %{pair[0]} and %{pair[1]} are no pair")
