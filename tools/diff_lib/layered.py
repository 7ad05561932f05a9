"""Programs of equal layers, with and without one of them.

The writer of the text knows the layer of each instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from diff_lib.known_pair import KnownPair
from hloopt.ir.instruction import Instruction
from hloopt.text import parse_module

_SIZE = 16
_MATRIX, _VECTOR, _ROWS = f"f32[{_SIZE},{_SIZE}]", f"f32[{_SIZE}]", f"f32[8,{_SIZE}]"

Key = tuple[int, str]
"""A layer, -1 for none, and the role of an instruction in it."""


class _Writer:
    """Collects instructions under keys; names are given at the end."""

    def __init__(self) -> None:
        self.lines: list[tuple[Key, str, str, tuple[Key, ...], str]] = []
        self.parameters = 0

    def add(self, key: Key, shape: str, opcode: str, *operands: Key, more: str = "") -> Key:
        self.lines.append((key, shape, opcode, operands, more))
        return key

    def parameter(self, key: Key, shape: str) -> Key:
        self.parameters += 1
        return self.add(key, shape, f"parameter({self.parameters - 1})")

    def dot(self, key: Key, shape: str, lhs: Key, rhs: Key, lhs_dim: int, rhs_dim: int) -> Key:
        dims = f", lhs_contracting_dims={{{lhs_dim}}}, rhs_contracting_dims={{{rhs_dim}}}"
        return self.add(key, shape, "dot", lhs, rhs, more=dims)

    def text(self, names: Mapping[Key, str]) -> str:
        lines = ["HloModule layers", "", "ENTRY main {"]
        for key, shape, opcode, operands, more in self.lines:
            root = "ROOT " if key == self.lines[-1][0] else ""
            call = opcode
            if not opcode.endswith(")"):
                call = f"{opcode}({', '.join(names[operand] for operand in operands)}){more}"
            lines.append(f"  {root}{names[key]} = {shape} {call}")
        return "\n".join((*lines, "}", ""))

    def names(self, naming: str) -> dict[Key, str]:
        """Names that say what each is where they are kept, else opcodes with numbers."""
        if naming == "kept":
            return {key: f"layer{key[0]}.{key[1]}" for key, *_ in self.lines}
        opcodes = {key: opcode.partition("(")[0] for key, _, opcode, *_ in self.lines}
        return {key: f"{each}.{number}" for number, (key, each) in enumerate(opcodes.items())}


def _program(layers: Sequence[int], *, is_training: bool) -> _Writer:
    """A residual network; in training with the gradients and updated weights as results."""
    writer = _Writer()
    add = writer.add
    x = writer.parameter((-1, "input"), _ROWS)
    weights = {
        layer: (writer.parameter((layer, "w"), _MATRIX), writer.parameter((layer, "b"), _VECTOR))
        for layer in layers
    }
    read: dict[int, tuple[Key, Key]] = {}
    for layer in layers:
        w, b = weights[layer]
        bias = add((layer, "bias"), _ROWS, "broadcast", b, more=", dimensions={1}")
        product = writer.dot((layer, "dot"), _ROWS, x, w, 1, 0)
        value = add((layer, "add"), _ROWS, "add", product, bias)
        active = add((layer, "tanh"), _ROWS, "tanh", value)
        read[layer] = x, active
        x = add((layer, "out"), _ROWS, "add", x, active)
    if not is_training:
        add((-1, "end"), _ROWS, "negate", x)
        return writer
    rate = add((-1, "rate"), "f32[]", "constant(0.01)")
    gradient = add((-1, "loss"), _ROWS, "multiply", x, x)
    results: list[Key] = []
    for layer in reversed(layers):
        x, active = read[layer]
        w = weights[layer][0]
        square = add((layer, "square"), _ROWS, "multiply", active, active)
        slope = add((layer, "slope"), _ROWS, "multiply", gradient, square)
        step = writer.dot((layer, "step"), _MATRIX, x, slope, 0, 0)
        scale = add((layer, "scale"), _MATRIX, "broadcast", rate, more=", dimensions={}")
        scaled = add((layer, "scaled"), _MATRIX, "multiply", step, scale)
        results.append(add((layer, "updated"), _MATRIX, "subtract", w, scaled))
        back = writer.dot((layer, "back"), _ROWS, slope, w, 1, 1)
        gradient = add((layer, "gradient"), _ROWS, "add", gradient, back)
    shape = f"({', '.join([_MATRIX] * len(results))})"
    add((-1, "results"), shape, "tuple", *reversed(results))
    return writer


def layered_pair(random: Random, naming: str) -> KnownPair:
    """A program of some layers, and the same program without one of them and its weights."""
    count = random.randint(3, 12)
    gone = random.randrange(count)
    is_training = random.random() < 0.5
    old = _program(range(count), is_training=is_training)
    new = _program([layer for layer in range(count) if layer != gone], is_training=is_training)
    old_names, new_names = old.names(naming), new.names(naming)
    before, after = parse_module(old.text(old_names)), parse_module(new.text(new_names))
    old_by_name = {instruction.name: instruction for instruction in before.instructions()}
    new_by_name = {instruction.name: instruction for instruction in after.instructions()}

    def partners(missing: int) -> dict[Instruction, Instruction]:
        """The partners where layer `missing` is the one that is gone."""
        layers = [layer for layer in range(count) if layer != missing]
        image = dict(zip(layers, (n for n in range(count) if n != gone), strict=True)) | {-1: -1}
        return {
            old_by_name[name]: new_by_name[new_names[image[layer], what]]
            for (layer, what), name in old_names.items()
            if layer != missing
        }

    kind = "training step" if is_training else "forward pass"
    name = f"layer {gone} of {count} of a {kind}, names {naming}"
    others = [partners(layer) for layer in range(count) if layer != gone]
    return KnownPair(name, before, after, partners(gone), others)
