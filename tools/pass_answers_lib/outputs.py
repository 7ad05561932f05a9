"""The outputs of a program for which results may differ, and whether they agree in all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloopt.analysis.fingerprint import fingerprint
from hloopt.ir import Module, Opcode
from hloopt.ir.instruction import Instruction
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import tuple_shape, without_layout
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

Excused = Callable[[Instruction], bool]


def agree_elsewhere(
    excused: Excused, before: Module, results: Sequence[Module], passes: Sequence[str] = ()
) -> bool:
    """Whether results of one program, layouts aside, agree in each output that is computed without
    an excused operation of the program.

    `passes` run on the results first: what these remove does not count.
    """
    outputs = _outputs(_inlined(before))
    behind = [any(map(excused, depth_first([each], lambda i: i.operands))) for each in outputs]
    rest = [_rest(result, behind, passes) for result in results]
    return None not in rest and len(set(rest)) == 1


def _rest(result: Module, behind: Sequence[bool], passes: Sequence[str]) -> str | None:
    """The fingerprint of a result without some of its outputs; None where it has others."""
    module = _inlined(result)
    entry, outputs = module.entry, _outputs(module)
    if len(outputs) != len(behind):
        return None
    kept = [each for each, is_behind in zip(outputs, behind, strict=True) if not is_behind]
    entry.set_root(entry.add(Opcode.TUPLE, tuple_shape([each.shape for each in kept]), kept))
    module.set_attribute("entry_computation_layout", None)
    for name in ("dce", *passes, "dce"):
        create_pass(name).run(module, PassContext())
    for instruction in module.instructions():
        instruction.shape = without_layout(instruction.shape)
    return fingerprint(module)


def _outputs(module: Module) -> list[Instruction]:
    """The outputs of a module; what gives several by itself is read for each."""
    root = module.entry.root
    if root.opcode is Opcode.TUPLE or not root.shape.is_tuple:
        return list(root.operands) if root.opcode is Opcode.TUPLE else [root]
    return [
        module.entry.add(Opcode.GET_TUPLE_ELEMENT, shape, [root], attributes={"index": str(number)})
        for number, shape in enumerate(root.shape.elements)
    ]


def _inlined(module: Module) -> Module:
    copy = parse_module(print_module(module))
    create_pass("call-inliner").run(copy, PassContext())
    return copy
