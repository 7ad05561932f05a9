"""Steps that compute: what hides the latency of the operations in flight."""

from __future__ import annotations

from schedule_fuzz_lib.writer import Array, Scope, vector

UNARY = ("negate", "exponential", "copy", "tanh")
_BINARY = ("add", "multiply", "maximum", "subtract")

GEMM = '{"gemm_backend_config":{"alpha_real":1,"beta":0,"alpha_imag":0}}'


def elementwise(scope: Scope) -> None:
    """An operation on one or two arrays."""
    a = scope.array()
    if scope.chance(0.4):
        opcode = scope.pick(UNARY)
        scope.add_array(opcode, a.size, f"{opcode}({a.name})")
    else:
        opcode = scope.pick(_BINARY)
        b = scope.array(a.size)
        scope.add_array(opcode, a.size, f"{opcode}({a.name}, {b.name})")


def fusion(scope: Scope) -> None:
    """A fusion of one or two arrays, of any kind."""
    a, b = scope.array(), scope.array()
    size = scope.size()
    kind = scope.pick(("kLoop", "kLoop", "kOutput", "kInput"))
    lines = [
        f"x = {a.shape} parameter(0)",
        f"y = {b.shape} parameter(1)",
        *(["zero = f32[] constant(0)"] if min(a.size, b.size) < size else []),
        *(_fitted("u", "x", a, size), _fitted("v", "y", b, size)),
        f"ROOT z = {vector(size)} add(u, v)",
    ]
    body = scope.computation("fused", lines)
    rest = f"fusion({a.name}, {b.name}), kind={kind}, calls={body}"
    scope.program.features.add("fusions")
    scope.add_array(f"{kind[1:].lower()}_fusion", size, rest)


def _fitted(name: str, value: str, array: Array, size: int) -> str:
    if array.size >= size:
        return f"{name} = {vector(size)} slice({value}), slice={{[0:{size}]}}"
    return f"{name} = {vector(size)} pad({value}, zero), padding=0_{size - array.size}"


def update_fusion(scope: Scope) -> None:
    """A fusion that updates a slice of an array of its own in place."""
    large = scope.array()
    own = scope.add("copy", large.shape, f"copy({large.name})")
    small = max(large.size // 4, 1)
    at = scope.integer(0)
    lines = [
        f"x = {large.shape} parameter(0)",
        f"y = {large.shape} parameter(1)",
        "n = s32[] parameter(2)",
        f"s = {vector(small)} slice(y), slice={{[0:{small}]}}",
        f"ROOT z = {large.shape} dynamic-update-slice(x, s, n)",
    ]
    body = scope.computation("fused", lines)
    other = scope.array(large.size)
    rest = f"fusion({own}, {other.name}, {at}), kind=kLoop, calls={body}"
    scope.program.features.add("updates in place")
    scope.add_array("update_fusion", large.size, rest)


def several_results(scope: Scope) -> None:
    """A fusion with two results."""
    a = scope.array()
    lines = [
        f"x = {a.shape} parameter(0)",
        f"u = {a.shape} negate(x)",
        f"v = {a.shape} exponential(x)",
        f"ROOT z = ({a.shape}, {a.shape}) tuple(u, v)",
    ]
    body = scope.computation("fused", lines)
    shape = f"({a.shape}, {a.shape})"
    both = scope.add("fusion", shape, f"fusion({a.name}), kind=kLoop, calls={body}")
    scope.others.append(both)
    for index in (0, 1):
        if index or scope.chance(0.7):
            scope.add_array("gte", a.size, f"get-tuple-element({both}), index={index}")


def gemm(scope: Scope, notes: tuple[str, ...] = ()) -> None:
    """A product by cuBLAS, with the memory that it works in."""
    a, b = scope.array(), scope.array()
    size = scope.size()
    shape = f"({vector(size)}, s8[{4 * scope.pick(scope.program.theme.sizes)}])"
    rest = f'custom-call({a.name}, {b.name}), custom_call_target="__cublas$gemm"'
    both = scope.add("cublas-gemm", shape, rest, notes, GEMM)
    scope.others.append(both)
    scope.add_array("gte", size, f"get-tuple-element({both}), index=0")
    scope.program.features.add("custom calls")


def custom_call(scope: Scope) -> None:
    """A call of a library, perhaps with a time, a hint or a place in the schedule."""
    a = scope.array()
    size = scope.size()
    notes: list[str] = []
    config = ""
    rest = f'custom-call({a.name}), custom_call_target="f"'
    if scope.chance(0.3):
        notes.append(f'latency_metadata="{scope.pick((1000, 250_000, 3_000_000))}"')
    if scope.chance(2 * scope.program.theme.hints):
        notes.append(f'scheduler_hint="{scope.pick(("force_early", "force_delay"))}"')
        if scope.chance(0.4):
            notes.append(f'scheduler_delay_priority="{scope.pick((1, 2))}"')
        scope.program.features.add("hints")
    elif scope.chance(scope.program.theme.hints):
        config = '{"force_earliest_schedule":true}'
        scope.program.features.add("hints")
    elif scope.chance(scope.program.theme.hints):
        rest += f", schedule={scope.pick(('SCHEDULE_EARLIEST', 'SCHEDULE_LATEST'))}"
        scope.program.features.add("hints")
    scope.program.features.add("custom calls")
    scope.add_array("custom-call", size, rest, notes, config)


def collective(scope: Scope) -> None:
    """A collective that runs like any other instruction."""
    a = scope.array()
    region = reduction(scope)
    channel = scope.program.channel()
    rest = (
        f"all-reduce({a.name}), channel_id={channel}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}},"
        f" use_global_device_ids=true, to_apply={region}"
    )
    scope.program.features.add("synchronous collectives")
    scope.add_array("all-reduce", a.size, rest)


def reduction(scope: Scope) -> str:
    """The name of a computation that adds two scalars."""
    lines = ("x = f32[] parameter(0)", "y = f32[] parameter(1)", "ROOT z = f32[] add(x, y)")
    return scope.computation("region", lines)


def tuples(scope: Scope) -> None:
    """A tuple, perhaps with a barrier, and what is taken out of it."""
    a, b = scope.array(), scope.array()
    shape = f"({a.shape}, {b.shape})"
    both = scope.add("tuple", shape, f"tuple({a.name}, {b.name})")
    if scope.chance(0.5):
        both = scope.add("barrier", shape, f"opt-barrier({both})")
    scope.others.append(both)
    for index, element in enumerate((a, b)):
        if index or scope.chance(0.5):
            scope.add_array("gte", element.size, f"get-tuple-element({both}), index={index}")


def reshaped(scope: Scope) -> None:
    """An array of another size, or the same bytes again."""
    a = scope.array()
    match scope.pick(("bitcast", "size", "broadcast", "iota")):
        case "bitcast":
            scope.add_array("bitcast", a.size, f"bitcast({a.name})")
        case "size" if scope.size() != a.size:
            scope.arrays.append(scope.resized(a, scope.size()))
        case "broadcast":
            value = scope.add("constant", "f32[]", "constant(1)")
            size = scope.size()
            scope.add_array("broadcast", size, f"broadcast({value}), dimensions={{}}")
        case _:
            scope.add_array("iota", a.size, "iota(), iota_dimension=0")


STEPS = (
    *(elementwise, elementwise, elementwise, elementwise),
    *(fusion, fusion, fusion, update_fusion, several_results),
    *(gemm, custom_call, custom_call, collective, tuples, reshaped),
)
