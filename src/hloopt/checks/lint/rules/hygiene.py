"""Rules about modules as texts: what no model knows, forms that go, what a dump should be."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.async_operations import OWN_STARTS
from hloopt.analysis.calls import reachable_from_entry
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Severity
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, Opcode

_OLD_INTERFACES = ("API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED")
"""Interfaces of custom calls that typed FFI replaces."""


@rule("HLL701", "unknown-custom-call", severity=Severity.NOTE)
def unknown_custom_call(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Targets of custom calls whose arithmetic is not known, each once. O(instructions)."""
    view.subject.costs.module()
    by_target: dict[str, list[Instruction]] = {}
    for call in view.subject.costs.unknown_calls:
        by_target.setdefault(custom_call_target(call), []).append(call)
    for target, calls in by_target.items():
        yield Finding(
            f"nothing is known of what {counted(len(calls), 'call')} of {target} cost: reports "
            "count the bytes of operands and results, and no flops",
            calls[0],
            related=tuple(calls[1:]),
        )


@rule("HLL702", "legacy-custom-call")
def legacy_custom_call(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Targets that are called by an interface that XLA has replaced, each once. O(instructions)."""
    found: dict[tuple[str, str], list[Instruction]] = {}
    reached = reachable_from_entry(view.subject.module)
    for call in view.subject.module.instructions(Opcode.CUSTOM_CALL):
        version = call.attributes.get("api_version", "")
        if version in _OLD_INTERFACES and call.parent in reached:
            found.setdefault((custom_call_target(call), version), []).append(call)
    for (target, version), calls in found.items():
        yield Finding(
            f"{counted(len(calls), 'call')} of {target} by {version}, which API_VERSION_TYPED_FFI "
            "replaces",
            calls[0],
            related=tuple(calls[1:]),
        )


_STARTS = frozenset((*OWN_STARTS, *ASYNC))


@rule("HLL703", "not-scheduled")
def not_scheduled(view: View, options: RuleOptions) -> Iterator[Finding]:
    """A module that is optimized, and whose header does not say that it is scheduled."""
    stage = view.subject.stage
    if stage.scheduled.holds is not False:
        return
    first = next((i for i in view.subject.module.instructions() if i.opcode in _STARTS), None)
    if first is not None:
        yield Finding(
            f"%{first.name} is asynchronous, and the module is not scheduled: reports go by an "
            "order that is not the compiler's",
            first,
        )
    elif stage.fused.holds is True:
        yield Finding(
            "the module is fused and not scheduled: reports go by an order that is not the "
            "compiler's"
        )
