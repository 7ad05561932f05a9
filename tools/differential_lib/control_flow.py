"""Recipes: loops, calls, conditionals, fusions and asynchronous calls around more recipes."""

from __future__ import annotations

from collections.abc import Callable

from differential_lib import patterns
from differential_lib.writer import Scope

Fill = Callable[[Scope, int], None]
"""Writes that many recipes."""
_DEEPEST = 3


def loop(scope: Scope, fill: Fill) -> None:
    """A counted loop over two vectors and a matrix, and what perhaps never changes."""
    program = scope.program
    body = Scope(program, scope.depth + 1, scope.may_meet, scope.may_tell)
    state = f"(s32[], {program.vector}, {program.vector}, {program.matrix}, {program.vector})"
    start, step = scope.pick((0, 0, 0, 1, 3)), scope.pick((1, 1, 1, 2))
    trips = scope.pick((0, 1, 2, 2, 3, 3, 4))
    argument = body.add(state, "parameter(0)")
    counter, first, total, buffer, last = (
        body.add(shape, f"get-tuple-element({argument}), index={index}")
        for index, shape in enumerate(state[1:-1].split(", "))
    )
    body.counters, body.vectors, body.matrices = [counter], [first, last], [buffer]
    # What is only summed up, or only stored, is what passes move out of loops.
    is_summed = _does(scope, "sums")
    is_stored = scope.may_meet and _does(scope, "stores")
    if not is_summed:
        body.vectors.append(total)
    if is_stored:
        body.matrices[:] = [body.full(1, program.matrix)]
    is_shifted = scope.may_meet and _does(scope, "permutes")
    fill(body, scope.dice.randint(0, 6 if not program.theme else 3))
    if program.theme and scope.depth < 2 and scope.chance(0.4):
        loop(body, fill)
    body.finish_some(1.0)
    if is_shifted:
        body.vectors.append(patterns.shifted(body, first))
    following_first = body.vectors[-1] if is_shifted and body.chance(0.7) else body.vector()
    if is_summed:
        for _ in range(scope.pick((1, 1, 2))):
            total = patterns.summed(body, total)
    if is_stored:
        buffer = patterns.stored(body, buffer, counter)
    following = body.add("s32[]", f"add({counter}, {body.integer(step)})")
    name, condition = program.name("body"), program.name("condition")
    results = (
        following,
        following_first,
        total if is_summed else body.vector(),
        buffer if is_stored else body.matrix(),
        last if body.chance(0.7) else body.vector(),
    )
    body.close(name, state, f"tuple({', '.join(results)})")
    test = Scope(program, scope.depth + 1)
    argument = test.add(state, "parameter(0)")
    counter = test.add("s32[]", f"get-tuple-element({argument}), index=0")
    end = test.integer(start + step * trips)
    test.close(condition, "pred[]", f"compare({counter}, {end}), direction=LT")
    initial = scope.full(0) if scope.chance(0.6) else scope.vector()
    begin = (scope.integer(start), scope.vector(), initial, scope.matrix(), scope.vector())
    begun = scope.add(state, f"tuple({', '.join(begin)})")
    known = ""
    if scope.chance(0.2):
        known = f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}'
    result = scope.add(state, f"while({begun}), condition={condition}, body={name}{known}")
    _take(scope, result, count=4)


def _does(scope: Scope, what: str) -> bool:
    """Whether a loop has something of one kind: most have what is the program's theme."""
    return scope.chance({what: 0.85, "": 0.45}.get(scope.program.theme, 0.2))


def call(scope: Scope, fill: Fill) -> None:
    """A computation called once or twice, some of whose parameters and results are dead."""
    program = scope.program
    calls = scope.pick((1, 1, 2))
    body = Scope(program, scope.depth + 1, scope.may_meet, scope.may_tell and calls == 1)
    state = f"(s32[], {program.vector}, {program.vector}, {program.matrix})"
    parameters = [
        body.add(shape, f"parameter({number})")
        for number, shape in enumerate(("s32[]", program.vector, program.vector, program.matrix))
    ]
    body.counters, body.vectors = [parameters[0]], parameters[1:3]
    body.matrices = [parameters[3]]
    fill(body, scope.dice.randint(1, 5))
    body.finish_some(1.0)
    name = program.name("callee")
    body.close(
        name,
        state,
        f"tuple({parameters[0]}, {body.vector()}, {body.vector()}, {body.matrix()})",
    )
    attribute = scope.pick(
        ("", "", "", ', frontend_attributes={inlineable="false"}', ", metadata={op_name=\"a/b\"}",
         ', frontend_attributes={_xla_stream_annotation="1"}',
         ', frontend_attributes={_collectives_group=""}',
         ', backend_config={"device_type":"DEVICE_TYPE_HOST"}')
    )  # fmt: skip
    for _ in range(calls):
        counter = scope.pick(scope.counters) if scope.counters else scope.integer(1)
        operands = f"{counter}, {scope.vector()}, {scope.vector()}, {scope.matrix()}"
        result = scope.add(state, f"call({operands}), to_apply={name}{attribute}")
        _take(scope, result, count=4)


def conditional(scope: Scope, fill: Fill) -> None:
    """Branches on a predicate, or on an index; alike on all devices, or without collectives."""
    program = scope.program
    is_alike = scope.chance(0.6)
    count = scope.pick((2, 2, 2, 3))
    state = f"({program.vector}, {program.vector}, {program.matrix})"
    names = []
    for _ in range(count):
        body = Scope(program, scope.depth + 1, scope.may_meet and is_alike, scope.may_tell)
        argument = body.add(state, "parameter(0)")
        body.vectors = [
            body.add(program.vector, f"get-tuple-element({argument}), index={i}") for i in (0, 1)
        ]
        body.matrices = [body.add(program.matrix, f"get-tuple-element({argument}), index=2")]
        fill(body, scope.dice.randint(0, 3))
        body.finish_some(1.0)
        names.append(program.name("branch"))
        body.close(names[-1], state, f"tuple({body.vector()}, {body.vector()}, {body.matrix()})")
    operand = scope.add(state, f"tuple({scope.vector()}, {scope.vector()}, {scope.matrix()})")
    index = scope.device_index()
    if is_alike:
        index = scope.pick(scope.counters) if scope.counters else scope.integer(scope.pick((0, 1)))
    if count == 2 and scope.chance(0.7):
        test = scope.add("pred[]", f"compare({index}, {scope.integer(1)}), direction=LT")
        branches = f"true_computation={names[0]}, false_computation={names[1]}"
        result = scope.add(state, f"conditional({test}, {operand}, {operand}), {branches}")
    else:
        operands = ", ".join([index, *[operand] * count])
        branches = f"branch_computations={{{', '.join(names)}}}"
        result = scope.add(state, f"conditional({operands}), {branches}")
    _take(scope, result, count=3)


def plain_conditional(scope: Scope, fill: Fill) -> None:
    """Branches that take and give an array, not a tuple; without collectives."""
    program = scope.program
    names = []
    for _ in range(2):
        body = Scope(program, scope.depth + 1, may_meet=False, may_tell=False)
        body.vectors = [body.add(program.vector, "parameter(0)")]
        body.matrices = [body.full(1, program.matrix)]
        fill(body, scope.dice.randint(0, 2))
        body.finish_some(1.0)
        names.append(program.name("branch"))
        body.close(names[-1], program.vector, f"add({body.vector()}, {body.vectors[0]})")
    index = scope.index(3)
    test = scope.add("pred[]", f"compare({index}, {scope.integer(1)}), direction=LT")
    operands = f"{test}, {scope.vector()}, {scope.vector()}"
    branches = f"true_computation={names[0]}, false_computation={names[1]}"
    scope.vectors.append(scope.add(program.vector, f"conditional({operands}), {branches}"))


def fusion(scope: Scope, fill: Fill) -> None:
    """A fusion of elementwise operations, or two of computations with the same content."""
    del fill
    program = scope.program
    kind = scope.pick(("kLoop", "kLoop", "kInput", "kOutput"))
    opcodes = scope.pick(("add", "maximum")), scope.pick(("subtract", "minimum"))
    for _ in range(scope.pick((1, 1, 2))):
        body = Scope(program, scope.depth + 1, may_meet=False, may_tell=False)
        a, b = (body.add(program.vector, f"parameter({number})") for number in (0, 1))
        middle = body.add(program.vector, f"{opcodes[0]}({a}, {b})")
        name = program.name("fused")
        body.close(name, program.vector, f"{opcodes[1]}({middle}, {a})")
        operands = f"{scope.vector()}, {scope.vector()}"
        scope.vectors.append(
            scope.add(program.vector, f"fusion({operands}), kind={kind}, calls={name}")
        )


def asynchronous_call(scope: Scope, fill: Fill) -> None:
    """A call that other instructions run beside, in the short or in the general form."""
    program = scope.program
    body = Scope(program, scope.depth + 1, may_meet=False, may_tell=False)
    body.vectors = [body.add(program.vector, "parameter(0)")]
    body.matrices = [body.full(2, program.matrix)]
    body.counters = [body.integer(1)]
    fill(body, scope.dice.randint(1, 3))
    body.finish_some(1.0)
    name = program.name("async")
    last = body.vector()
    body.close(
        name, program.vector, f"negate({last})" if program.element != "u32" else f"copy({last})"
    )
    vector, operand = program.vector, scope.vector()
    shape = f"(({vector}), {vector}, u32[])"
    is_sugar = scope.chance(0.5)
    form = (
        f"call-start({operand}), to_apply={name}"
        if is_sugar
        else f"async-start({operand}), calls={_wrapped_call(scope, name)}"
    )
    start = scope.add(shape, form)
    prefix = "call" if is_sugar else "async"
    if scope.chance(0.3):
        start = scope.add(shape, f"{prefix}-update({start})")
    scope.pending.append(lambda: scope.vectors.append(scope.add(vector, f"{prefix}-done({start})")))


def _wrapped_call(scope: Scope, name: str) -> str:
    """A computation that does nothing but call another, for the general form."""
    vector = scope.program.vector
    body = Scope(scope.program, scope.depth + 1)
    argument = body.add(vector, "parameter(0)")
    wrapper = scope.program.name("wrapped")
    body.close(wrapper, vector, f"call({argument}), to_apply={name}")
    return wrapper


_KINDS = {4: "svvm", 3: "vvm"}
"""Scalar, vector or matrix: what loops and calls give, what branches do."""


def _take(scope: Scope, state: str, *, count: int) -> None:
    """Take arrays out of the state of a loop, call or branch."""
    program = scope.program
    for index, kind in enumerate(_KINDS[count]):
        values = {"v": scope.vectors, "m": scope.matrices}.get(kind)
        if values is None or (values and scope.chance(0.25)):
            continue
        shape = program.vector if kind == "v" else program.matrix
        values.append(scope.add(shape, f"get-tuple-element({state}), index={index}"))


def recipes(scope: Scope) -> tuple[Callable[[Scope, Fill], None], ...]:
    """The patterns that may stand here: none that nest where it is deep, or large, already."""
    if scope.depth >= _DEEPEST or scope.program.instructions > 150:
        return (fusion,)
    return (
        loop,
        loop,
        loop,
        loop,
        call,
        call,
        conditional,
        plain_conditional,
        fusion,
        asynchronous_call,
    )
