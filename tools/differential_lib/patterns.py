"""Recipes: collectives as single passes look for them, or what comes close to it."""

from __future__ import annotations

from collections.abc import Callable

from differential_lib.collectives import widened
from differential_lib.writer import COLUMNS, ROWS, Scope


def summed(scope: Scope, total: str) -> str:
    """all-reduce-code-motion: a total, and what a loop adds to it in each trip."""
    program = scope.program
    value = scope.vector()
    if scope.may_meet and scope.chance(0.8):
        _, groups = program.devices.reducing()
        value = scope.add(
            program.vector, f"all-reduce({value}), {groups}, to_apply={program.reduction()}"
        )
    match scope.pick(("", "", "selected", "scaled")):
        case "selected":
            index = scope.pick(scope.counters) if scope.chance(0.5) else scope.index(3)
            test = scope.add("pred[]", f"compare({index}, {scope.integer(1)}), direction=LT")
            wide = scope.add(f"pred[{ROWS}]", f"broadcast({test}), dimensions={{}}")
            arms = [value, scope.full(0)]
            if scope.chance(0.3):
                arms.reverse()
            value = scope.add(program.vector, f"select({wide}, {arms[0]}, {arms[1]})")
        case "scaled":
            value = scope.add(program.vector, f"multiply({value}, {scope.full(2)})")
    operands = [total, value]
    scope.dice.shuffle(operands)
    return scope.add(program.vector, f"add({', '.join(operands)})")


def shifted(scope: Scope, first: str) -> str:
    """collective-permute-decomposer: what the neighbour has, of this trip or the one before."""
    vector = scope.program.vector
    operand = scope.pick((first, scope.vectors[-1], scope.vectors[-1], scope.vector()))
    moved = scope.add(vector, f"collective-permute({operand}), {scope.program.devices.pairs()}")
    return scope.add(vector, f"add({moved}, {first})")


def stored(scope: Scope, buffer: str, counter: str) -> str:
    """collective-pipeliner, all-reduce-code-motion: a collective's result stored in each trip."""
    program = scope.program
    row = f"{program.element}[1,{COLUMNS}]"
    value = scope.add(
        f"{program.element}[{COLUMNS}]", f"slice({scope.vector()}), slice={{[0:{COLUMNS}]}}"
    )
    value = scope.add(row, f"reshape({value})")
    if scope.chance(0.7):
        _, groups = program.devices.reducing()
        value = scope.add(row, f"all-reduce({value}), {groups}, to_apply={program.reduction()}")
    else:
        value = scope.add(row, f"collective-permute({value}), {program.devices.pairs()}")
    at, zero = counter if scope.chance(0.7) else scope.index(ROWS), scope.integer(0)
    if scope.chance(0.3):
        old = scope.add(
            row, f"dynamic-slice({buffer}, {at}, {zero}), dynamic_slice_sizes={{1,{COLUMNS}}}"
        )
        value = scope.add(row, f"add({old}, {value})")
    return scope.add(program.matrix, f"dynamic-update-slice({buffer}, {value}, {at}, {zero})")


def reduced_twice(scope: Scope) -> None:
    """all-reduce-folder, -simplifier: all-reduces of all-reduces, or of what is alike already."""
    program = scope.program
    value = scope.vector() if scope.chance(0.7) else scope.full(3)
    kind = scope.pick(("add", "maximum"))
    for _ in range(2):
        _, groups = program.devices.reducing()
        apply = f"to_apply={program.reduction(kind)}"
        value = scope.add(program.vector, f"all-reduce({value}), {groups}, {apply}")
    scope.vectors.append(value)


def sum_of_collectives(scope: Scope) -> None:
    """all-reduce-reassociate, reduce-scatter-reassociate, combiners: two that are alike."""
    program = scope.program
    size, groups = program.devices.reducing()
    kind = scope.pick(("add", "add", "maximum"))
    opcode, attributes = "all-reduce", groups
    shape = program.vector
    if scope.chance(0.4):
        opcode, attributes = "reduce-scatter", f"{groups}, dimensions={{0}}"
        shape = f"{program.element}[{ROWS // size}]"
    apply = program.reduction(kind)
    values = []
    for _ in range(2):
        channel = program.devices.channel() if "channel_id" in attributes else ""
        fresh = ", ".join(
            channel if part.startswith("channel_id") else part for part in attributes.split(", ")
        )
        values.append(scope.add(shape, f"{opcode}({scope.vector()}), {fresh}, to_apply={apply}"))
    combined = scope.add(shape, f"{kind}({values[0]}, {values[1]})")
    length = ROWS if opcode == "all-reduce" else ROWS // size
    scope.vectors.append(widened(scope, combined, length))


def own_part_of_a_sum(scope: Scope) -> None:
    """reduce-scatter-creator, all-reduce-splitter: each device takes its part, or another's."""
    program = scope.program
    devices = program.devices
    size, groups = devices.reducing()
    whole = scope.add(
        program.vector, f"all-reduce({scope.vector()}), {groups}, to_apply={program.reduction()}"
    )
    kind = scope.pick(devices.id_opcodes)
    number = scope.add("u32[]", f"{kind}()")
    length = ROWS // size
    match scope.pick(("scaled", "table", "unsigned", "other")):
        case "scaled":
            at = scope.add("s32[]", f"convert({number})")
            at = scope.add("s32[]", f"multiply({at}, {scope.integer(length)})")
        case "table":
            starts = [length * place for place in range(4)]
            if scope.chance(0.3):
                scope.dice.shuffle(starts)
            table = scope.add("s32[4]", f"constant({{{','.join(map(str, starts))}}})")
            at = scope.add("s32[1]", f"dynamic-slice({table}, {number}), dynamic_slice_sizes={{1}}")
            at = scope.add("s32[]", f"reshape({at})")
        case "unsigned":
            at = scope.add(
                "u32[]", f"multiply({number}, {scope.add('u32[]', f'constant({length})')})"
            )
        case _:
            at = scope.index(ROWS)
    shape = f"{program.element}[{length}]"
    part = scope.add(shape, f"dynamic-slice({whole}, {at}), dynamic_slice_sizes={{{length}}}")
    if scope.chance(0.4):
        _, again = devices.reducing()
        apply = program.reduction()
        part = scope.add(shape, f"all-reduce({part}), {again}, to_apply={apply}")
    scope.vectors.append(widened(scope, part, length))


def gathered_broadcast(scope: Scope) -> None:
    """all-gather-bcast-reorder, all-gather-cse: a gathered broadcast, or one gathered twice."""
    program = scope.program
    size, groups = program.devices.reducing()
    whole = f"{program.element}[{ROWS * size},{COLUMNS}]"
    spread = scope.add(program.matrix, f"broadcast({scope.vector()}), dimensions={{0}}")
    if scope.chance(0.3):
        row = scope.add(
            f"{program.element}[{COLUMNS}]", f"slice({scope.vector()}), slice={{[0:{COLUMNS}]}}"
        )
        spread = scope.add(program.matrix, f"broadcast({row}), dimensions={{1}}")
    gathered = [
        scope.add(whole, f"all-gather({spread}), {groups}, dimensions={{0}}")
        for _ in range(scope.pick((1, 2)))
    ]
    for value in gathered:
        at, zero = scope.index(ROWS * size), scope.integer(0)
        scope.matrices.append(
            scope.add(
                program.matrix,
                f"dynamic-slice({value}, {at}, {zero}), dynamic_slice_sizes={{{ROWS},{COLUMNS}}}",
            )
        )


def narrowed_after_summing(scope: Scope) -> None:
    """reorder-convert-reduce-add, all-reduce-reassociate: a convert behind an all-reduce."""
    program = scope.program
    _, groups = program.devices.reducing()
    wide = f"f32[{ROWS}]"
    if program.element == "f32":
        return
    totals = []
    for _ in range(scope.pick((1, 2))):
        total = scope.add(
            program.vector,
            f"all-reduce({scope.vector()}), {groups}, to_apply={program.reduction()}",
        )
        totals.append(scope.add(wide, f"convert({total})"))
    other = scope.add(wide, f"convert({scope.vector()})")
    total = scope.add(wide, f"add({totals[0]}, {totals[-1] if len(totals) > 1 else other})")
    scope.vectors.append(scope.add(program.vector, f"convert({total})"))


def scattered_transpose(scope: Scope) -> None:
    """reorder-reduce-transpose: a reduce-scatter behind a transpose or a reshape."""
    program = scope.program
    size, groups = program.devices.reducing()
    turned = scope.add(
        f"{program.element}[{COLUMNS},{ROWS}]",
        f"transpose({scope.matrix()}), dimensions={{1,0}}",
    )
    shape = f"{program.element}[{COLUMNS},{ROWS // size}]"
    part = scope.add(
        shape,
        f"reduce-scatter({turned}), {groups}, dimensions={{1}}, to_apply={program.reduction()}",
    )
    zero = scope.number(0)
    short = scope.add(
        f"{program.element}[{ROWS // size}]",
        f"reduce({part}, {zero}), dimensions={{0}}, to_apply={program.reduction()}",
    )
    scope.vectors.append(widened(scope, short, ROWS // size))


def transposed_sum(scope: Scope) -> None:
    """reorder-reduce-transpose: a sum in the state of the transpose of a reduce-scatter."""
    program = scope.program
    size, groups = program.devices.reducing()
    whole = scope.add(
        f"{program.element}[{COLUMNS * size},{ROWS}]",
        f"broadcast({scope.vector()}), dimensions={{1}}",
    )
    part = scope.add(
        f"{program.element}[{COLUMNS},{ROWS}]",
        f"reduce-scatter({whole}), {groups}, dimensions={{0}}, to_apply={program.reduction()}",
    )
    turned = scope.add(program.matrix, f"transpose({part}), dimensions={{1,0}}")
    base = scope.matrices[0] if scope.chance(0.7) else scope.matrix()
    scope.matrices.append(scope.add(program.matrix, f"add({base}, {turned})"))


def widened_sum(scope: Scope) -> None:
    """reorder-convert-reduce-add: a sum in the state of an all-reduce in a smaller type."""
    program = scope.program
    _, groups = program.devices.reducing()
    narrow = "bf16" if program.is_float else "s32"
    kind = scope.pick(program.devices.id_opcodes)
    number = scope.add(f"{narrow}[]", f"convert({scope.add('u32[]', f'{kind}()')})")
    value = scope.add(f"{narrow}[{ROWS}]", f"broadcast({number}), dimensions={{}}")
    total = scope.add(
        f"{narrow}[{ROWS}]",
        f"all-reduce({value}), {groups}, to_apply={program.reduction('add', narrow)}",
    )
    wide = scope.add(program.vector, f"convert({total})")
    base = scope.vectors[1] if len(scope.vectors) > 1 else scope.vector()
    scope.vectors.append(scope.add(program.vector, f"add({base}, {wide})"))


def summed_in_two_steps(scope: Scope) -> None:
    """all-reduce-splitter: on four devices, pairs keep the same part of a sum over all."""
    program = scope.program
    if program.devices.count != 4:
        return
    groups = scope.pick(("{{0,1},{2,3}}", "{{0,2},{1,3}}"))
    starts = scope.pick(("0,6,0,6", "0,0,6,6", "6,0,6,0", "0,6,6,0"))

    def reduced(value: str, shape: str, groups: str) -> str:
        attributes = f"{program.devices.channel()}, use_global_device_ids=true"
        apply = program.reduction()
        return scope.add(
            shape, f"all-reduce({value}), replica_groups={groups}, {attributes}, to_apply={apply}"
        )

    whole = reduced(scope.vector(), program.vector, "{{0,1,2,3}}")
    kind = scope.pick(program.devices.id_opcodes)
    table = scope.add("s32[4]", f"constant({{{starts}}})")
    number = scope.add("u32[]", f"{kind}()")
    at = scope.add("s32[1]", f"dynamic-slice({table}, {number}), dynamic_slice_sizes={{1}}")
    at = scope.add("s32[]", f"reshape({at})")
    shape = f"{program.element}[6]"
    part = scope.add(shape, f"dynamic-slice({whole}, {at}), dynamic_slice_sizes={{6}}")
    if scope.chance(0.7):
        part = reduced(part, shape, groups)
    scope.vectors.append(widened(scope, part, 6))


def gathered_twice(scope: Scope) -> None:
    """all-gather-cse: a parameter gathered twice, with channels of their own."""
    program = scope.program
    size, groups = program.devices.reducing()
    if "channel_id" not in groups:
        return
    first, _, rest = groups.partition(", channel_id=")
    _, _, rest = rest.partition(", ")
    for _ in range(2):
        channel = program.devices.channel()
        whole = scope.add(
            f"{program.element}[{ROWS * size}]",
            f"all-gather({scope.vectors[0]}), {first}, {channel}{', ' + rest if rest else ''}, "
            "dimensions={0}",
        )
        start = scope.dice.randrange(ROWS * size - ROWS + 1)
        scope.vectors.append(
            scope.add(program.vector, f"slice({whole}), slice={{[{start}:{start + ROWS}]}}")
        )


RECIPES: tuple[Callable[[Scope], object], ...] = (
    *(reduced_twice, sum_of_collectives, sum_of_collectives, own_part_of_a_sum, own_part_of_a_sum),
    *(gathered_broadcast, narrowed_after_summing, scattered_transpose, transposed_sum),
    *(widened_sum, summed_in_two_steps, gathered_twice),
)
