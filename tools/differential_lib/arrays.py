"""Recipes: elementwise operations, slices and updates, reductions, and arrays rearranged."""

from __future__ import annotations

from collections.abc import Callable

from differential_lib.writer import COLUMNS, ROWS, Scope


def elementwise(scope: Scope) -> None:
    shape = scope.program.vector
    if scope.chance(0.2) and scope.program.element != "u32":
        scope.vectors.append(scope.add(shape, f"{scope.pick(('negate', 'abs'))}({scope.vector()})"))
        return
    opcode = scope.pick(("add", "add", "subtract", "multiply", "maximum", "minimum"))
    if opcode == "multiply" and scope.program.is_float:
        opcode = "add"  # products of products overflow
    scope.vectors.append(scope.add(shape, f"{opcode}({scope.vector()}, {scope.vector()})"))


def with_constant(scope: Scope) -> None:
    shape, value = scope.program.vector, scope.pick((0, 1, 1, 2, 3))
    other = scope.full(value)
    opcode = scope.pick(("add", "multiply", "subtract"))
    scope.vectors.append(scope.add(shape, f"{opcode}({scope.vector()}, {other})"))


def chosen_by_device(scope: Scope) -> None:
    """A select whose predicate differs per device, per trip, or nowhere."""
    left = scope.index(4)
    direction = scope.pick(("LT", "EQ", "GE", "NE"))
    test = scope.add(
        "pred[]", f"compare({left}, {scope.integer(scope.pick((0, 1, 2)))}), direction={direction}"
    )
    if scope.chance(0.4):
        test = scope.add(f"pred[{ROWS}]", f"broadcast({test}), dimensions={{}}")
    other = scope.full(0) if scope.chance(0.4) else scope.vector()
    a, b = scope.vector(), other
    if scope.chance(0.5):
        a, b = b, a
    scope.vectors.append(scope.add(scope.program.vector, f"select({test}, {a}, {b})"))


def made_of_the_device(scope: Scope) -> None:
    """A vector of the number of the device."""
    kind = scope.pick(scope.program.devices.id_opcodes)
    number = scope.add(scope.program.scalar, f"convert({scope.add('u32[]', f'{kind}()')})")
    spread = scope.add(scope.program.vector, f"broadcast({number}), dimensions={{}}")
    scope.vectors.append(scope.add(scope.program.vector, f"add({spread}, {scope.vector()})"))


def updated_slice(scope: Scope) -> None:
    """A row of a matrix is replaced by what it was and the start of a vector."""
    element, matrix = scope.program.element, scope.program.matrix
    row = scope.add(f"{element}[{COLUMNS}]", f"slice({scope.vector()}), slice={{[0:{COLUMNS}]}}")
    row = scope.add(f"{element}[1,{COLUMNS}]", f"reshape({row})")
    buffer, at, zero = scope.matrix(), scope.index(ROWS), scope.integer(0)
    if scope.chance(0.6):
        old = scope.add(
            f"{element}[1,{COLUMNS}]",
            f"dynamic-slice({buffer}, {at}, {zero}), dynamic_slice_sizes={{1,{COLUMNS}}}",
        )
        row = scope.add(f"{element}[1,{COLUMNS}]", f"add({old}, {row})")
    scope.matrices.append(scope.add(matrix, f"dynamic-update-slice({buffer}, {row}, {at}, {zero})"))


def read_slice(scope: Scope) -> None:
    """A row of a matrix, spread over a vector."""
    element = scope.program.element
    at, zero = scope.index(ROWS), scope.integer(0)
    row = scope.add(
        f"{element}[1,{COLUMNS}]",
        f"dynamic-slice({scope.matrix()}, {at}, {zero}), dynamic_slice_sizes={{1,{COLUMNS}}}",
    )
    row = scope.add(f"{element}[{COLUMNS}]", f"reshape({row})")
    wide = scope.add(
        f"{element}[{COLUMNS},{ROWS // COLUMNS}]", f"broadcast({row}), dimensions={{0}}"
    )
    scope.vectors.append(scope.add(scope.program.vector, f"reshape({wide})"))


def reduced(scope: Scope) -> None:
    """The rows of a matrix combined."""
    kind = scope.pick(("add", "maximum"))
    start = scope.number(0)
    scope.vectors.append(
        scope.add(
            scope.program.vector,
            f"reduce({scope.matrix()}, {start}), dimensions={{1}}, "
            f"to_apply={scope.program.reduction(kind)}",
        )
    )


def outer(scope: Scope) -> None:
    """A matrix of a vector."""
    matrix = scope.program.matrix
    spread = scope.add(matrix, f"broadcast({scope.vector()}), dimensions={{0}}")
    scope.matrices.append(scope.add(matrix, f"add({spread}, {scope.matrix()})"))


def rearranged(scope: Scope) -> None:
    """Reshapes, transposes, reversals and copies, some of which undo each other."""
    element, vector = scope.program.element, scope.program.vector
    flat = scope.vector()
    match scope.pick(
        ("reshape", "transpose", "reverse", "copy", "both reshaped", "concatenate", "twice")
    ):
        case "reshape":
            square = scope.add(f"{element}[3,4]", f"reshape({flat})")
            square = scope.add(f"{element}[3,4]", f"add({square}, {square})")
            scope.vectors.append(scope.add(vector, f"reshape({square})"))
        case "transpose":
            square = scope.add(f"{element}[3,4]", f"reshape({flat})")
            turned = scope.add(f"{element}[4,3]", f"transpose({square}), dimensions={{1,0}}")
            scope.vectors.append(scope.add(vector, f"reshape({turned})"))
        case "twice":
            once = scope.add(f"{element}[3,4]", f"reshape({flat})")
            again = scope.add(f"{element}[4,3]", f"reshape({once})")
            turned = scope.add(f"{element}[3,4]", f"transpose({again}), dimensions={{1,0}}")
            turned = scope.add(f"{element}[4,3]", f"transpose({turned}), dimensions={{1,0}}")
            scope.vectors.append(scope.add(vector, f"reshape({turned})"))
        case "reverse":
            scope.vectors.append(scope.add(vector, f"reverse({flat}), dimensions={{0}}"))
        case "copy":
            scope.vectors.append(scope.add(vector, f"copy({flat})"))
        case "both reshaped":
            shape = f"{element}[2,6]"
            a, b = (scope.add(shape, f"reshape({v})") for v in (flat, scope.vector()))
            both = scope.add(shape, f"add({a}, {b})")
            scope.vectors.append(scope.add(vector, f"reshape({both})"))
        case _:
            half = f"{element}[6]"
            a = scope.add(half, f"slice({flat}), slice={{[0:6]}}")
            b = scope.add(half, f"slice({scope.vector()}), slice={{[6:12]}}")
            scope.vectors.append(scope.add(vector, f"concatenate({a}, {b}), dimensions={{0}}"))


def converted(scope: Scope) -> None:
    """There and back through another type."""
    other = scope.pick(("f32", "s32") if scope.program.element != "bf16" else ("f32",))
    wide = scope.add(f"{other}[{ROWS}]", f"convert({scope.vector()})")
    wide = scope.add(f"{other}[{ROWS}]", f"add({wide}, {wide})")
    scope.vectors.append(scope.add(scope.program.vector, f"convert({wide})"))


def tuples(scope: Scope) -> None:
    """Values through a tuple, and perhaps a barrier."""
    vector, matrix = scope.program.vector, scope.program.matrix
    state = f"({vector}, {matrix})"
    both = scope.add(state, f"tuple({scope.vector()}, {scope.matrix()})")
    if scope.chance(0.5):
        both = scope.add(state, f"opt-barrier({both})")
    scope.vectors.append(scope.add(vector, f"get-tuple-element({both}), index=0"))
    scope.matrices.append(scope.add(matrix, f"get-tuple-element({both}), index=1"))


RECIPES: tuple[Callable[[Scope], object], ...] = (
    *(elementwise, elementwise, with_constant, chosen_by_device, chosen_by_device),
    *(made_of_the_device, updated_slice, updated_slice, read_slice, reduced, outer),
    *(rearranged, rearranged, converted, tuples),
)
