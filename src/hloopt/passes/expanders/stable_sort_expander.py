"""Write stable sorts as sorts that compare positions where elements are equal."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.clone import clone_computation
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule

_MOST = (1 << 31) - 1
_PRED, _S32 = array_shape("pred"), array_shape("s32")


@rule(
    op("sort").where(lambda sort: sort.attributes.get("is_stable") == "true"),
    floats="finite", dynamic=True, moves_control=True,
)  # fmt: skip
def break_ties_by_position(match: Match) -> Result:
    """Compare by an iota where the comparator finds neither element before the other."""
    sort = match.root
    (dimension,) = dimensions_of(sort)
    if sort.operands[0].shape.dimensions[dimension] > _MOST:
        return Missed(f"dimension {dimension} has more than {_MOST} elements")
    for number, operand in enumerate(sort.operands):
        if _is_position(operand, dimension):
            _make_unstable(sort, number)
            return EDITED
    return _with_positions(match, dimension)


@register(
    "stable-sort-expander",
    preserves="finite",
    xla=XlaPass(
        "StableSortExpander", "xla/hlo/transforms/expanders/stable_sort_expander.h",
    ),
)  # fmt: skip
class StableSortExpander(RulePass):
    """Replace stable sorts by unstable ones with a comparator that breaks ties.

    Elements of which neither comes before the other are compared by their positions: an operand
    that is an s32 iota along the sorted dimension, else one that is added. The comparator is
    cloned where others call it, too. Where it is no order, as comparisons of floats with NaN are
    none, elements may come in another order. A dimension of more than 2147483647 elements stays.
    Linear in the number of instructions and the size of comparators.
    """

    rules = (break_ties_by_position,)
    max_sweeps = 1


def _is_position(operand: Instruction, dimension: int) -> bool:
    return (
        operand.opcode is Opcode.IOTA
        and operand.shape.type_name == "s32"
        and operand.attributes["iota_dimension"] == str(dimension)
    )


def _make_unstable(sort: Instruction, number: int) -> None:
    """Let a sort compare operand `number` where the others are equal."""
    comparator = sort.called[0]
    if len(comparator.callers) > 1:
        comparator, _ = clone_computation(comparator)
        sort.set_called((comparator,))
    _break_ties(comparator, number)
    sort.set_attribute("is_stable", None)


def _with_positions(match: Match, dimension: int) -> Instruction:
    """A new sort of positions, too; the old results."""
    sort, build = match.root, match.build
    first = sort.operands[0].shape
    positions = build.iota(array_shape("s32", first.dimensions, layout=first.layout), dimension)
    comparator, _ = clone_computation(sort.called[0])
    count = len(sort.operands)
    for n, side in enumerate(("lhs", "rhs")):
        comparator.add(Opcode.PARAMETER, _S32, name=f"p.{count}.{side}", payload=str(2 * count + n))
    _break_ties(comparator, count)
    old = [sort.shape] if sort.shape.is_array else list(sort.shape.elements)
    shape = tuple_shape([*old, positions.shape])
    made = build.clone(sort, [*sort.operands, positions], shape)
    made.set_called((comparator,))
    made.set_attribute("is_stable", None)
    elements = [
        build.make("get-tuple-element", made, shape=old[n], attributes={"index": str(n)})
        for n in range(count)
    ]
    return elements[0] if sort.shape.is_array else build.make("tuple", *elements)


def _break_ties(comparator: Computation, number: int) -> None:
    """Let a comparator compare pair `number` where its answer is the same both ways round."""
    answer, parameters = comparator.root, comparator.parameters
    exchanged: dict[Instruction, Instruction] = {
        p: parameters[n ^ 1] for n, p in enumerate(parameters)
    }
    for instruction in depth_first([answer], lambda i: i.operands):
        if instruction not in exchanged:
            operands = [exchanged[operand] for operand in instruction.operands]
            exchanged[instruction] = comparator.add_clone(instruction, operands)
    left, right = parameters[2 * number], parameters[2 * number + 1]
    is_equal = comparator.add(
        Opcode.COMPARE, _PRED, [answer, exchanged[answer]], attributes={"direction": "EQ"}
    )
    is_before = comparator.add(Opcode.COMPARE, _PRED, [left, right], attributes={"direction": "LT"})
    comparator.set_root(comparator.add(Opcode.SELECT, _PRED, [is_equal, is_before, answer]))
