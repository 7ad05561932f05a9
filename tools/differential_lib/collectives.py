"""Recipes: collectives on vectors and matrices, at once or with a start and a done."""

from __future__ import annotations

from collections.abc import Callable

from differential_lib.writer import COLUMNS, ROWS, Scope

_REDUCTIONS = ("add", "add", "add", "maximum", "minimum", "multiply")


def all_reduce(scope: Scope, operand: str = "", *, kind: str = "", later: bool = True) -> str:
    """An all-reduce of a vector; the name of its result, empty where it comes later."""
    _, groups = scope.program.devices.reducing(may_be_uneven=True)
    apply = f"to_apply={scope.program.reduction(kind or scope.pick(_REDUCTIONS))}"
    shape, operand = scope.program.vector, operand or scope.vector()
    if later and scope.chance(0.25):
        start = scope.add(shape, f"all-reduce-start({operand}), {groups}, {apply}")
        _later(scope, lambda: scope.add(shape, f"all-reduce-done({start})"))
        return ""
    return _keep(scope, scope.add(shape, f"all-reduce({operand}), {groups}, {apply}"))


def variadic_all_reduce(scope: Scope) -> None:
    _, groups = scope.program.devices.reducing()
    apply = f"to_apply={scope.program.reduction()}"
    vector, matrix = scope.program.vector, scope.program.matrix
    both = scope.add(
        f"({vector}, {matrix})",
        f"all-reduce({scope.vector()}, {scope.matrix()}), {groups}, {apply}",
    )
    _keep(scope, scope.add(vector, f"get-tuple-element({both}), index=0"))
    scope.matrices.append(scope.add(matrix, f"get-tuple-element({both}), index=1"))


def matrix_all_reduce(scope: Scope) -> None:
    _, groups = scope.program.devices.reducing()
    apply = f"to_apply={scope.program.reduction()}"
    shape = scope.program.matrix
    scope.matrices.append(scope.add(shape, f"all-reduce({scope.matrix()}), {groups}, {apply}"))


def all_gather(scope: Scope) -> None:
    """Gather vectors, and take a slice that is other on each device, or not."""
    size, groups = scope.program.devices.reducing()
    element = scope.program.element
    part, whole = scope.program.vector, f"{element}[{ROWS * size}]"
    operand = scope.vector()
    attributes = f"{groups}, dimensions={{0}}"

    def cut(gathered: str) -> str:
        if scope.chance(0.5):
            first = scope.dice.randrange(ROWS * size - ROWS + 1)
            return scope.add(part, f"slice({gathered}), slice={{[{first}:{first + ROWS}]}}")
        at = scope.index(ROWS * size)
        return scope.add(part, f"dynamic-slice({gathered}, {at}), dynamic_slice_sizes={{{ROWS}}}")

    if scope.chance(0.25):
        start = scope.add(f"({part}, {whole})", f"all-gather-start({operand}), {attributes}")
        _later(scope, lambda: cut(scope.add(whole, f"all-gather-done({start})")))
        return
    _keep(scope, cut(scope.add(whole, f"all-gather({operand}), {attributes}")))


def matrix_all_gather(scope: Scope) -> None:
    """Gather the columns or the rows of a matrix."""
    size, groups = scope.program.devices.reducing()
    dimension = scope.pick((0, 1))
    sizes = [ROWS, COLUMNS]
    sizes[dimension] *= size
    whole = scope.add(
        f"{scope.program.element}[{sizes[0]},{sizes[1]}]",
        f"all-gather({scope.matrix()}), {groups}, dimensions={{{dimension}}}",
    )
    starts = ", ".join(scope.index(8) for _ in range(2))
    scope.matrices.append(
        scope.add(
            scope.program.matrix,
            f"dynamic-slice({whole}, {starts}), dynamic_slice_sizes={{{ROWS},{COLUMNS}}}",
        )
    )


def reduce_scatter(scope: Scope) -> None:
    size, groups = scope.program.devices.reducing()
    kind = scope.pick(_REDUCTIONS)
    attributes = f"{groups}, dimensions={{0}}, to_apply={scope.program.reduction(kind)}"
    part, whole = f"{scope.program.element}[{ROWS // size}]", scope.program.vector
    _exchange(
        scope, "reduce-scatter", whole, part, attributes, lambda v: widened(scope, v, ROWS // size)
    )


def all_to_all(scope: Scope) -> None:
    size, groups = scope.program.devices.exchanging()
    vector = scope.program.vector
    if scope.chance(0.3):
        shape = ", ".join([vector] * size)
        operands = ", ".join(scope.vector() for _ in range(size))
        every = scope.add(f"({shape})", f"all-to-all({operands}), {groups}")
        one = scope.dice.randrange(size)
        _keep(scope, scope.add(vector, f"get-tuple-element({every}), index={one}"))
        return
    _exchange(scope, "all-to-all", vector, vector, f"{groups}, dimensions={{0}}", lambda v: v)


def collective_permute(scope: Scope) -> None:
    pairs, vector, operand = scope.program.devices.pairs(), scope.program.vector, scope.vector()
    if scope.chance(0.25):
        start = scope.add(f"({vector}, {vector})", f"collective-permute-start({operand}), {pairs}")
        _later(scope, lambda: scope.add(vector, f"collective-permute-done({start})"))
        return
    _keep(scope, scope.add(vector, f"collective-permute({operand}), {pairs}"))


def collective_broadcast(scope: Scope) -> None:
    _, groups = scope.program.devices.exchanging()
    vector = scope.program.vector
    _exchange(scope, "collective-broadcast", vector, vector, groups, lambda v: v)


def send_and_receive(scope: Scope) -> None:
    """A transfer in the form that collective-permutes are decomposed into.

    It has a channel of its own, and an order: else schedules that wait for ever were allowed.
    Nothing orders the transfers of two calls of one computation once they are inlined, as in XLA.
    """
    if not scope.may_tell:
        return
    program, vector = scope.program, scope.program.vector
    attributes = program.devices.pairs()
    pairs, _, channel = attributes.partition(", ")
    pairs = pairs.removeprefix("source_target_pairs=")
    if channel == "" or pairs == "{}":
        return
    channel = f"channel_id={1000 + program.instructions}"
    said = f'{channel}, frontend_attributes={{_xla_send_recv_source_target_pairs="{pairs}"}}'
    token = scope.add("token[]", "after-all()")
    state = f"({vector}, u32[], token[])"
    receive = scope.add(state, f"recv({token}), {said}")
    send = scope.add(
        state, f"send({scope.vector()}, {token}), {said}, control-predecessors={{{receive}}}"
    )
    done = scope.add(
        f"({vector}, token[])", f"recv-done({receive}), {channel}, control-predecessors={{{send}}}"
    )
    scope.add("token[]", f"send-done({send}), {channel}, control-predecessors={{{done}}}")
    _keep(scope, scope.add(vector, f"get-tuple-element({done}), index=0"))


def widened(scope: Scope, part: str, length: int) -> str:
    """A short vector brought to the usual length."""
    vector = scope.program.vector
    if length == ROWS:
        return part
    if scope.chance(0.5):
        zero = scope.number(0)
        return scope.add(vector, f"pad({part}, {zero}), padding=0_{ROWS - length}")
    at = scope.index(ROWS)
    return scope.add(vector, f"dynamic-update-slice({scope.vector()}, {part}, {at})")


def _exchange(
    scope: Scope, opcode: str, whole: str, part: str, attributes: str, then: Callable[[str], str]
) -> None:
    """A collective, at once or wrapped into an asynchronous computation."""
    operand = scope.vector()
    if scope.chance(0.75):
        _keep(scope, then(scope.add(part, f"{opcode}({operand}), {attributes}")))
        return
    body = Scope(scope.program, scope.depth + 1)
    argument = body.add(whole, "parameter(0)")
    name = scope.program.name("wrapped")
    body.close(name, part, f"{opcode}({argument}), {attributes}")
    shape = f"(({whole}), {part}, u32[])"
    start = scope.add(shape, f"async-start({operand}), calls={name}")
    if scope.chance(0.3):
        start = scope.add(shape, f"async-update({start})")
    _later(scope, lambda: then(scope.add(part, f"async-done({start})")))


def _keep(scope: Scope, value: str) -> str:
    scope.vectors.append(value)
    return value


def _later(scope: Scope, done: Callable[[], str]) -> None:
    scope.pending.append(lambda: scope.vectors.append(done()))


RECIPES: tuple[Callable[[Scope], object], ...] = (
    *(all_reduce, all_reduce, all_reduce, variadic_all_reduce, matrix_all_reduce, all_gather),
    *(all_gather, matrix_all_gather, reduce_scatter, reduce_scatter, all_to_all),
    *(collective_permute, collective_permute, collective_broadcast, send_and_receive),
)
