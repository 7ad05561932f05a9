"""Recipes: what single passes look for, without collectives."""

from __future__ import annotations

from collections.abc import Callable

from differential_lib.writer import ROWS, Scope


def sorted_values(scope: Scope) -> None:
    """simplify-sorts: two arrays sorted by one of them, where only one is read."""
    program = scope.program
    name = program.name("order")
    body = Scope(program, scope.depth + 1)
    a = body.add(program.scalar, "parameter(0)")
    b = body.add(program.scalar, "parameter(1)")
    for number in (2, 3):
        body.add("s32[]", f"parameter({number})")
    body.close(name, "pred[]", f"compare({a}, {b}), direction={scope.pick(('LT', 'GT'))}")
    numbers = scope.add(f"s32[{ROWS}]", "iota(), iota_dimension=0")
    shape = f"({program.vector}, s32[{ROWS}])"
    both = scope.add(
        shape,
        f"sort({scope.vector()}, {numbers}), dimensions={{0}}, is_stable=true, to_apply={name}",
    )
    scope.vectors.append(scope.add(program.vector, f"get-tuple-element({both}), index=0"))


def nothing_at_all(scope: Scope) -> None:
    """zero-sized-hlo-elimination: arrays without elements, and what is joined with them."""
    element, vector = scope.program.element, scope.program.vector
    empty = scope.add(f"{element}[0]", f"slice({scope.vector()}), slice={{[3:3]}}")
    empty = scope.add(f"{element}[0]", f"add({empty}, {empty})")
    scope.vectors.append(
        scope.add(vector, f"concatenate({scope.vector()}, {empty}), dimensions={{0}}")
    )


def host_memory(scope: Scope) -> None:
    """host-memory-transfer-asyncifier: there and back, as a whole or a slice."""
    element = scope.program.element
    host, here = f"{element}[{ROWS}]{{0:S(5)}}", f"{element}[{ROWS}]{{0}}"
    there = scope.add(host, f"copy({scope.vector()})")
    scope.vectors.append(scope.add(here, f"copy({there})"))


def constants(scope: Scope) -> None:
    """constant-folding: what is known without running."""
    table = ",".join(str(scope.dice.randrange(5)) for _ in range(ROWS))
    known = scope.add(scope.program.vector, f"constant({{{table}}})")
    folded = scope.add(scope.program.vector, f"add({known}, {known})")
    scope.vectors.append(scope.add(scope.program.vector, f"add({folded}, {scope.vector()})"))


def equal_fusions(scope: Scope) -> None:
    """computation-deduplicator, cse: two computations of one content, called each once."""
    program = scope.program
    for _ in range(2):
        name = program.name("twin")
        program.computations.append(
            f"{name} {{\n  {name}.p = {program.vector} parameter(0)\n"
            f"  ROOT {name}.r = {program.vector} add({name}.p, {name}.p)\n}}"
        )
        form = f"fusion({scope.vector()}), kind=kLoop, calls={name}"
        if scope.chance(0.3):
            form = f"call({scope.vector()}), to_apply={name}"
        scope.vectors.append(scope.add(program.vector, form))


def told_outside(scope: Scope) -> None:
    """A side effect: nothing may drop it, do it twice, or swap it with another.

    Several are in the entry alone, in an order that control dependencies give; else their order
    would be open.
    """
    program, vector = scope.program, scope.program.vector
    if not scope.may_tell or (program.effects and scope.depth):
        return
    after = program.effects[-1:] if scope.depth == 0 else []
    if program.has_inner_effect:
        return
    program.has_inner_effect = scope.depth > 0
    order = f", control-predecessors={{{', '.join(after)}}}" if after else ""
    if scope.chance(0.5):
        told = scope.add(
            vector,
            f'custom-call({scope.vector()}), custom_call_target="tell", '
            f"custom_call_has_side_effect=true{order}",
        )
        scope.vectors.append(told)
    else:
        token = scope.add("token[]", "after-all()")
        told = scope.add(
            "token[]", f"outfeed({scope.vector()}, {token}), outfeed_shape={vector}{order}"
        )
    program.effects.append(told)


def chosen_for_each_element(scope: Scope) -> None:
    """conditional-to-select: a conditional in what map applies to elements."""
    program = scope.program
    names = []
    for opcode in ("add", "multiply" if not program.is_float else "maximum"):
        branch = Scope(program, scope.depth + 1)
        value = branch.add(program.scalar, "parameter(0)")
        names.append(program.name("choice"))
        branch.close(names[-1], program.scalar, f"{opcode}({value}, {value})")
    mapped = Scope(program, scope.depth + 1)
    value = mapped.add(program.scalar, "parameter(0)")
    two = mapped.add(program.scalar, "constant(2)")
    test = mapped.add("pred[]", f"compare({value}, {two}), direction=LT")
    name = program.name("mapped")
    mapped.close(
        name,
        program.scalar,
        f"conditional({test}, {value}, {value}), true_computation={names[0]}, "
        f"false_computation={names[1]}",
    )
    scope.vectors.append(
        scope.add(program.vector, f"map({scope.vector()}), dimensions={{0}}, to_apply={name}")
    )


def annotated(scope: Scope) -> None:
    """Annotations for streams and scheduling groups."""
    vector = scope.program.vector
    said = scope.pick(
        (
            ', frontend_attributes={_scheduling_group_id="1"}',
            ', frontend_attributes={_scheduling_group_id="noop"}',
            ', backend_config={"operation_queue_id":"1"}',
        )
    )
    scope.vectors.append(scope.add(vector, f"add({scope.vector()}, {scope.vector()}){said}"))


def scaled_product(scope: Scope) -> None:
    """scaled-dot-rewriter, block-scaling-rewriter: a product of one side with scales, one a row."""
    element = scope.program.element
    rows, depth = ROWS // 3, 3
    shape = f"{element}[{rows},{depth}]"
    values = scope.add(shape, f"reshape({scope.vector()})")
    other = scope.add(f"{element}[{depth},{depth}]", "constant({{1,0,2},{0,1,1},{1,1,0}})")
    scales = scope.add(f"{element}[{rows},1]", "constant({{1},{2},{1},{2}})")
    if scope.chance(0.5):
        one = scope.add(f"{element}[1,1]", "constant({{1}})")
        form = f"scaled-dot({values}, {other}, {scales}, {one}), "
        form += "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    else:
        form = f"custom-call({values}, {other}, {scales}), "
        form += 'custom_call_target="__op$block_scaled_dot"'
    scope.vectors.append(scope.add(scope.program.vector, f"reshape({scope.add(shape, form)})"))


RECIPES: tuple[Callable[[Scope], object], ...] = (
    *(sorted_values, nothing_at_all, host_memory, constants, equal_fusions, told_outside),
    *(chosen_for_each_element, annotated, scaled_product),
)
