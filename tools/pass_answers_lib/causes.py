"""Reasons why our result and XLA's differ that are not known to compute different things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hloopt.analysis.fingerprint import fingerprint
from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import without_layout
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from pass_answers_lib.outputs import Excused, agree_elsewhere


class Modules(NamedTuple):
    """A program, and what both made of it, without what nothing reads."""

    before: Module
    theirs: Module
    ours: Module


class Cause(NamedTuple):
    """The reason why results differ that compute the same, or that cannot be run."""

    text: str
    holds: Callable[[Modules], bool]
    needs_runs: bool = False
    """Whether both results have to be run and give the same: what an operation became is not
    compared otherwise."""


def _copies(modules: Modules) -> tuple[Module, Module]:
    """Both results, to be changed."""
    theirs, ours = (parse_module(print_module(each)) for each in (modules.theirs, modules.ours))
    return theirs, ours


def _differ_in_layouts(modules: Modules) -> bool:
    copies = _copies(modules)
    for module in copies:
        for instruction in module.instructions():
            instruction.shape = without_layout(instruction.shape)
    return len({*map(fingerprint, copies)}) == 1


def _differ_in_copies(modules: Modules) -> bool:
    copies = _copies(modules)
    for module in copies:
        for name in ("cse", "dce"):
            create_pass(name).run(module, PassContext())
    return len({*map(fingerprint, copies)}) == 1


def count(module: Module, opcode: Opcode) -> int:
    """The number of instructions of an opcode."""
    return sum(1 for _ in module.instructions(opcode))


def are_unsorted(modules: Modules) -> bool:
    """Whether XLA left contracting dimensions unsorted that it rearranged."""
    return any(
        theirs.attributes != ours.attributes and len(_contracting(theirs)) > 2
        for theirs, ours in zip(
            modules.theirs.instructions(Opcode.DOT),
            modules.ours.instructions(Opcode.DOT),
            strict=True,
        )
    )


def _contracting(dot: Any) -> list[int]:
    return list(parse_ints(dot.attributes.get("lhs_contracting_dims", "{}")))


def has_control(modules: Modules) -> bool:
    return any(each.has_control_dependencies for each in modules.before.instructions())


MOVES_CONTROL = Cause(
    "XLA leaves a dot with control dependencies beside the new one, ours moves them", has_control
)
LAYOUTS = Cause("layouts of what is made differ, before layouts are assigned", _differ_in_layouts)
MADE_TWICE = Cause("XLA makes a value twice that ours makes once", _differ_in_copies)


_LARGEST = 4095
"""The number of elements that XLA:CPU reduces itself, whatever the reducer."""


def _reduces_other_layouts(modules: Modules) -> bool:
    """Whether the program reduces several arrays of different layouts together."""
    return any(
        len({a.shape.layout.minor_to_major for a in each.operands[: len(each.operands) // 2]}) > 1
        for each in modules.before.instructions(Opcode.REDUCE)
    )


def _converts_to_other_layout(modules: Modules) -> bool:
    """Whether a convert of a reduce has another layout than the reduce."""
    return any(
        each.operands[0].opcode is Opcode.REDUCE
        and each.operands[0].shape.layout.minor_to_major != each.shape.layout.minor_to_major
        for each in modules.before.instructions(Opcode.CONVERT)
    )


def _only_behind(modules: Modules, excused: Excused, *passes: str) -> bool:
    """Whether results differ only in what excused operations of the program became."""
    return any(map(excused, modules.before.instructions())) and agree_elsewhere(
        excused, modules.before, (modules.theirs, modules.ours), passes
    )


def _has_fewer(opcode: Opcode, one: Module, other: Module) -> bool:
    return count(one, opcode) < count(other, opcode)


def _gathers_scalar(each: Instruction) -> bool:
    return each.opcode is Opcode.GATHER and each.operands[0].shape.is_scalar


def _is_large_reduce(each: Instruction) -> bool:
    return each.opcode is Opcode.REDUCE and each.operands[0].shape.element_count() > _LARGEST


def _is_topk_of_bf16(each: Instruction) -> bool:
    return each.opcode is Opcode.TOPK and each.operands[0].shape.type_name == "bf16"


def _joins(each: Instruction) -> bool:
    """Whether an instruction is a bitcast-convert to a type of more bits."""
    return each.opcode is Opcode.BITCAST_CONVERT and _bits(each) > _bits(each.operands[0])


def _gives_pred(each: Instruction) -> bool:
    return _splits(each) and each.shape.type_name == "pred"


def _splits(each: Instruction) -> bool:
    return each.opcode is Opcode.BITCAST_CONVERT and _bits(each) < _bits(each.operands[0])


def _agree_in_all(modules: Modules, *passes: str) -> bool:
    """Whether results agree in all outputs, once passes ran on them."""
    results = (modules.theirs, modules.ours)
    return agree_elsewhere(lambda each: False, modules.before, results, passes)


def _bits(each: Instruction) -> int:
    """The bits of an element as a bitcast-convert sees it."""
    element = each.shape.element_type
    assert element is not None
    return 8 if element.name == "pred" else element.bits


def _longest_state(module: Module) -> int:
    return max((len(each.shape.elements) for each in module.instructions(Opcode.WHILE)), default=0)


REPEATS_INIT = Cause(
    "XLA combines an initial value with each window that may count; ours leaves these reductions",
    lambda modules: (
        count(modules.ours, Opcode.REDUCE_WINDOW) < count(modules.theirs, Opcode.REDUCE_WINDOW)
    ),
)
LEFT_TO_LIBRARY = Cause(
    "XLA:CPU leaves large sums, and largest and smallest elements, to a library",
    lambda modules: (
        _has_fewer(Opcode.REDUCE_WINDOW, modules.theirs, modules.ours)
        and _only_behind(modules, _is_large_reduce)
    ),
    needs_runs=True,
)
STOPS_AT_TUPLE = Cause(
    "XLA does not hoist twice what reads the first state of an inner loop, part of which changes",
    lambda modules: _longest_state(modules.theirs) < _longest_state(modules.ours),
)
KEEPS_SCANS = Cause(
    "XLA gives the carries of a scan as its results, or combines an initial value that may count "
    "with each row; ours leaves these scans",
    lambda modules: count(modules.ours, Opcode.SCAN) > count(modules.theirs, Opcode.SCAN),
)
KEEPS_CONVERTED_LAYOUT = Cause(
    "XLA gives the copy behind a convert the layout of the reduce, and those that read it that of "
    "the convert",
    _converts_to_other_layout,
)
READS_OTHER_LAYOUT = Cause(
    "XLA gives a reduce of several arrays another layout, and those that read it the old one",
    _reduces_other_layouts,
)
GATHERS_SCALAR = Cause(
    "newer XLA, as ours, broadcasts a scalar where this one gathers from it",
    lambda modules: (
        _has_fewer(Opcode.GATHER, modules.ours, modules.theirs)
        and _only_behind(modules, _gathers_scalar)
    ),
    needs_runs=True,
)
BITCASTS_DO_NOTHING = Cause(
    "XLA splits elements with reshapes, broadcasts and bitcast-converts beside, which do nothing",
    lambda modules: (
        any(map(_splits, modules.before.instructions())) and _agree_in_all(modules, "algsimp")
    ),
)
JOINS_BY_REDUCE = Cause(
    "XLA joins elements by a reduce; newer XLA, as ours, by slices",
    lambda modules: (
        _has_fewer(Opcode.REDUCE, modules.ours, modules.theirs)
        and _only_behind(modules, _joins, "algsimp")
    ),
    needs_runs=True,
)
CONVERTS_TO_PRED = Cause(
    "newer XLA, as ours, converts integers to pred, this one bitcast-converts them",
    lambda modules: (
        any(map(_gives_pred, modules.before.instructions()))
        and _only_behind(modules, lambda each: _gives_pred(each) or _joins(each), "algsimp")
    ),
    needs_runs=True,
)
PACKS_TOPK = Cause(
    "newer XLA, as ours, packs values of bf16 and indices into one number",
    lambda modules: _only_behind(modules, _is_topk_of_bf16),
    needs_runs=True,
)
HOISTS_LEFTOVERS = Cause(
    "XLA also hoists what the hoisting from an inner loop left, which nothing reads",
    lambda modules: _longest_state(modules.ours) < _longest_state(modules.theirs),
)
