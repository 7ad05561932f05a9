"""Steps that talk to other devices."""

from __future__ import annotations

from memory_fuzz_lib.writer import FLOATS, NUMBERS, Scope, Value, names, tuple_text

_SENT = (*(kind for kind in NUMBERS if kind != "s16"), "pred")


def _meeting(scope: Scope, *, groups: bool = True) -> str:
    """All devices, in one group or, where they need not, in two; between partitions if there are
    several, else between replicas."""
    theme = scope.program.theme
    devices = [*range(theme.devices)]
    half = len(devices) // 2
    found = [devices]
    if groups and scope.chance(0.3):
        found = [devices[:half], devices[half:]]
    text = ",".join(f"{{{','.join(map(str, group))}}}" for group in found)
    result = f", replica_groups={{{text}}}"
    if theme.partitions > 1:
        result += f", channel_id={scope.program.channel()}, use_global_device_ids=true"
    return result


def all_reduce(scope: Scope) -> None:
    """An all-reduce of one array or, between replicas, of several.

    With a channel XLA:GPU gives the parts of several no layout.
    """
    values = [scope.array(types=(*FLOATS, "s32", "u32"))]
    if scope.program.theme.partitions == 1 and scope.chance(0.4):
        values += [scope.array(types=values[0].type) for _ in range(scope.pick((1, 2)))]
    values = list(dict.fromkeys(v for v in values if v.type == values[0].type))
    reducer = scope.program.reducer(scope.pick(("add", "maximum")), values[0].type)
    rest = f"all-reduce({names(values)}){_meeting(scope)}, to_apply={reducer}"
    if len(values) == 1:
        scope.add(*values[0][1:], rest, *values)
        return
    whole = scope.write("all-reduce", tuple_text(values), rest, *values)
    scope.elements("reduced", whole, values)


def all_gather(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=_SENT)
    size = value.dimensions[0] * scope.program.theme.devices
    rest = f"all-gather({value.name}){_meeting(scope, groups=False)}, dimensions={{0}}"
    if size <= 4096:
        scope.add(value.type, (size, *value.dimensions[1:]), rest, value)


def reduce_scatter(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=(*FLOATS, "s32"))
    devices = scope.program.theme.devices
    if not value.size or value.dimensions[0] % devices:
        return
    reducer = scope.program.reducer("add", value.type)
    rest = f"reduce-scatter({value.name}){_meeting(scope, groups=False)}, dimensions={{0}}"
    dimensions = (value.dimensions[0] // devices, *value.dimensions[1:])
    scope.add(value.type, dimensions, f"{rest}, to_apply={reducer}", value)


def permute(scope: Scope) -> None:
    value = scope.array(types=_SENT)
    count = scope.program.theme.devices
    pairs = [(device, (device + 1) % count) for device in range(count)]
    if scope.chance(0.3):
        pairs.pop()
    text = ",".join(f"{{{source},{target}}}" for source, target in pairs)
    rest = f"collective-permute({value.name}), source_target_pairs={{{text}}}"
    if scope.program.theme.partitions > 1:
        rest += f", channel_id={scope.program.channel()}"
    scope.add(*value[1:], rest, value)


def all_to_all(scope: Scope) -> None:
    """Parts of an array, or whole arrays, exchanged."""
    theme = scope.program.theme
    value = scope.array(ranks=(1, 2), types=_SENT)
    groups = _meeting(scope, groups=False).replace(", use_global_device_ids=true", "")
    if value.size and value.dimensions[0] % theme.devices == 0 and scope.chance(0.7):
        scope.add(*value[1:], f"all-to-all({value.name}){groups}, dimensions={{0}}", value)
        return
    values = [value, *(scope.like(value) for _ in range(theme.devices - 1))]
    whole = scope.write(
        "all-to-all", tuple_text(values), f"all-to-all({names(values)}){groups}", *values
    )
    scope.elements("exchanged", whole, values)


def spread(scope: Scope) -> None:
    """An array of one device for all."""
    value = scope.array(types=_SENT)
    groups = _meeting(scope).replace(", use_global_device_ids=true", "")
    scope.add(*value[1:], f"collective-broadcast({value.name}){groups}", value)


def own_number(scope: Scope) -> None:
    opcode = "partition-id" if scope.program.theme.partitions > 1 else "replica-id"
    number = Value(scope.write("id", "u32[]", f"{opcode}()"), "u32", ())
    scope.add("s32", (), f"convert({number.name})", number)


STEPS = (
    all_reduce,
    all_reduce,
    all_gather,
    reduce_scatter,
    permute,
    permute,
    all_to_all,
    spread,
    own_number,
)
