"""Write associative scans as reduce-windows."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.reductions.repeated_init import may_be_repeated
from hloopt.passes.reductions.two_level_scan import Scan, two_level_scan
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule
from hloopt.passes.rewriting.rules.constants import scalar_text, splat_of

_ELEMENTWISE = frozenset(
    (
        *(*ELEMENTWISE_UNARY, *ELEMENTWISE_BINARY, Opcode.PARAMETER, Opcode.TUPLE),
        *(Opcode.CONVERT, Opcode.COMPARE, Opcode.SELECT, Opcode.CLAMP),
    )
)


@rule(op("scan"), floats="rounding", moves_control=True)
def reduce_windows(match: Match) -> Result:
    """scan(x, init) -> (reduce-window(x, init), init), where nothing reads the carry."""
    root, build, length = match.root, match.build, match.options.base_length
    if reason := _why_not(root):
        return Missed(reason)
    x, init = root.operands
    body = root.called[0]
    (dimension,) = dimensions_of(root)
    size = x.shape.dimensions[dimension]
    is_long = bool(length) and size > length
    known = _scalar_init(match, init)
    if known is None:
        return Missed(f"%{init.name} is not known to be one value everywhere")
    if is_long and not may_be_repeated(body, known):
        return Missed(f"%{known.name} would be combined with each row")
    reducer = _wrapper(_scalarized(body))
    scan = Scan(dimension, reducer, known)
    if is_long:
        result = two_level_scan(build, x, scan, length)
    else:
        result = build.make(
            "reduce-window", x, known, shape=root.shape.elements[0], called=(reducer,),
            attributes=scan.window(x.shape.rank, dimension, size),
        )  # fmt: skip
    return build.make("tuple", result, init)


@register(
    "associative-scan-rewriter",
    preserves="rounding",
    xla=XlaPass(
        "AssociativeScanRewriter", "xla/hlo/transforms/simplifiers/reduce_window_rewriter.h"
    ),
)
class AssociativeScanRewriter(RulePass):
    """Replace associative scans of one array by reduce-windows.

    A forward scan whose result is its carry, whose last carry nothing reads and whose initial value
    is one number everywhere becomes one reduce-window as long as the array. Above `base_length` it
    is done in two levels, where the initial value may be combined with each row. The body is
    wrapped into a reducer, of scalars where it works on arrays element by element. Linear in the
    number of instructions and the size of bodies.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        base_length: int = option(16, "longer scans are done in two levels; 0: none")

    options: Options
    rules = (reduce_windows,)
    max_sweeps = 1


def _why_not(scan: Instruction) -> str | None:
    attributes, body = scan.attributes, scan.called[0]
    if attributes.get("is_associative") != "true":
        return "it is not associative"
    if attributes.get("is_reverse") == "true":
        return "it runs backwards"
    if len(scan.operands) != 2 or attributes["num_carries"] != "1":
        return "it has not one input and one carry"
    root = body.root
    if root.opcode is not Opcode.TUPLE or root.operands[0] is not root.operands[1]:
        return f"%{body.name} gives another result than its carry"
    if scan.is_root or not all(_reads_result(user) for user in scan.users):
        return "its last carry is read"
    for inner in body.instructions if body.parameters[0].shape.rank else ():
        if not _is_elementwise(inner):
            return f"%{inner.name} in %{body.name} does not work element by element"
    return None


def _reads_result(user: Instruction) -> bool:
    return user.opcode is Opcode.GET_TUPLE_ELEMENT and user.tuple_index == 0


def _is_elementwise(instruction: Instruction) -> bool:
    if instruction.opcode is Opcode.CONSTANT:
        return splat_of(instruction) is not None
    if instruction.opcode is Opcode.BROADCAST:
        return instruction.operands[0].shape.is_scalar
    return instruction.opcode in _ELEMENTWISE


def _scalar_init(match: Match, init: Instruction) -> Instruction | None:
    """The value of rank 0 that all elements of an initial carry have."""
    if init.opcode is Opcode.BROADCAST and init.operands[0].shape.is_scalar:
        return init.operands[0]
    if init.shape.is_scalar:
        return init
    value = splat_of(init) if init.opcode is Opcode.CONSTANT else None
    return None if value is None else match.build.scalar(value, init.shape)


def _scalarized(body: Computation) -> Computation:
    """A body that works element by element, on single elements; itself where it does."""
    if body.parameters[0].shape.is_scalar:
        return body
    made = body.module.add_computation(f"{body.name}_scalarized")
    copies: dict[Instruction, Instruction] = {}
    for old in stable_order(body):
        if old.opcode is Opcode.BROADCAST:
            copies[old] = copies[old.operands[0]]
            continue
        copy = copies[old] = made.add_clone(old, [copies[o] for o in old.operands])
        copy.shape = _of_elements(old.shape)
        value = splat_of(old) if old.opcode is Opcode.CONSTANT else None
        if value is not None:
            copy.set_payload(scalar_text(value, copy.shape))
    made.set_root(copies[body.root])
    return made


def _of_elements(shape: Shape) -> Shape:
    if shape.is_tuple:
        return tuple_shape(_of_elements(element) for element in shape.elements)
    return array_shape(shape.type_name)


def _wrapper(body: Computation) -> Computation:
    """A reducer of (carry, input) that gives the carry of a scan's body."""
    made = body.module.add_computation(f"{body.name}_rw_wrapper")
    taken, carry = body.parameters
    element = made.add(Opcode.PARAMETER, taken.shape, name="input_0", payload="1")
    before = made.add(Opcode.PARAMETER, carry.shape, name="carry_0", payload="0")
    call = made.add(Opcode.CALL, body.root.shape, [element, before], called=(body,))
    made.set_root(
        made.add(Opcode.GET_TUPLE_ELEMENT, carry.shape, [call], attributes={"index": "1"})
    )
    return made
