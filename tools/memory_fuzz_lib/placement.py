"""Steps that say where or when something is done: in host memory, beside other work, to a size that
is known late."""

from __future__ import annotations

from memory_fuzz_lib.writer import FLOATS, NUMBERS, Scope, Value


def through_host(scope: Scope) -> None:
    """Move an array to the memory of the host, and back."""
    value = scope.array(types=FLOATS, least=2)
    there = _placed(scope, value, "annotate_device_placement", "pinned_host")
    scope.values.append(_placed(scope, there, "annotate_device_placement", "device"))
    scope.program.features.add("host memory")


def _placed(scope: Scope, value: Value, target: str, where: str) -> Value:
    rest = f'custom-call({value.name}), custom_call_target="{target}", '
    rest += "custom_call_has_side_effect=true, "
    rest += f'frontend_attributes={{_xla_buffer_placement="{where}"}}'
    return Value(scope.write("placed", value.shape, rest, value), *value[1:])


def own_stream(scope: Scope) -> None:
    """A call that runs on a stream of its own."""
    value = scope.array(types=NUMBERS)
    function = scope.program.computation(
        "streamed",
        f"x = {value.shape} parameter(0)",
        f"y = {value.shape} add(x, x)",
        f"ROOT z = {value.shape} multiply(y, x)",
    )
    rest = f"call({value.name}), to_apply={function}, "
    rest += 'frontend_attributes={_xla_stream_annotation="1"}'
    scope.add(*value[1:], rest, value)
    scope.program.features.add("streams")


def late_size(scope: Scope) -> None:
    """A size that is known when the program runs, given to an array and taken away."""
    value = scope.array(ranks=(1,), types=("f32", "s32", "bf16"), least=4)
    number = scope.find(lambda v: v.type == "s32" and not v.dimensions) or scope.scalar("s32", 3)
    size = value.dimensions[0]
    bounded = f"{value.type}[<={size}]"
    rest = f"set-dimension-size({value.name}, {number.name}), dimensions={{0}}"
    cut = scope.write("cut", bounded, rest, value, number)
    if scope.chance(0.5):
        cut = scope.write("cut", bounded, f"negate({cut})")
    reducer = scope.program.reducer("add", value.type)
    rest = f"reduce({cut}, {scope.scalar(value.type).name}), dimensions={{0}}, to_apply={reducer}"
    scope.add(value.type, (), rest)
    scope.program.features.add("dynamic sizes")


STEPS = (through_host, own_stream, late_size)
