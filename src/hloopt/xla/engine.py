"""Run a module on XLA:CPU instead of the interpreter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.literals import VALUES_LEFT_OUT
from hloopt.interpreter.values import Array, Value, arrays_of, dtype_of_shape, make_value
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.literals.literal import ELIDED, canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.xla.entry import dynamic_dimensions, parameter_leaves, result_leaves
from hloopt.xla.preparation import prepare
from hloopt.xla.process import XlaDied, ask_xla

_CODE = "HLO505"
_LONGEST_MESSAGE = 300  # characters
_UNKNOWN_TARGET = re.compile(r"(?:custom call to|handler registered for) (.+?) (?:for|on a) ")
"""XLA's error for a custom call that it does not know."""
_NO_STAND_INS = (
    "XLA has no stand-ins for custom calls that it does not know; the interpreter has: "
    "--engine numpy (in `hloopt run` with --stand-ins)"
)


def run_with_xla(
    module: Module,
    arguments: Sequence[Sequence[Value]],
    devices: Sequence[Device],
    *,
    seconds: float = 300.0,
    flags: str | None = None,
) -> list[Value]:
    """Run a module's entry on XLA:CPU, as `machine.run_module` does.

    `arguments` has the values of the entry's parameters for each device. Returns the value of the
    entry's root for each device. The module is taken as already partitioned. `flags` are XLA's, as
    its variable XLA_FLAGS has them; None: those of the environment. Raises RunError
    (HLO505) where there is no jaxlib, XLA refuses the module, or takes longer than `seconds`, and
    (HLO502) for constants without their values, for which XLA would make some up.
    """
    _refuse_left_out_values(module)
    parameters = parameter_leaves(module)
    flat = [list(_given(parameters, values)) for values in arguments]
    replicas = max(device.replica for device in devices) + 1
    partitions = max(device.partition for device in devices) + 1
    question = (prepare(module), replicas, partitions, flat)
    try:
        kind, answer = ask_xla(question, seconds, flags)
    except XlaDied as died:
        raise RunError(_short(str(died)), code=_CODE) from None
    if kind == "missing":
        raise RunError(
            f"XLA cannot be asked: {_short(answer)}",
            help="pip install 'hloopt[xla]'",
            code=_CODE,
        )
    if kind == "refused":
        raise _refused(module, answer)
    return [_result(module, outputs) for outputs in answer]


def _refused(module: Module, answer: str) -> RunError:
    """The error with XLA's words, about the custom call where that is what XLA does not know."""
    message = f"XLA refuses the module: {_short(answer)}"
    unknown = _UNKNOWN_TARGET.search(answer)
    for call in module.instructions(Opcode.CUSTOM_CALL):
        if unknown is not None and custom_call_target(call) == unknown[1]:
            return cannot_run(call, message, _CODE, _NO_STAND_INS)
    return RunError(message, code=_CODE)


def _refuse_left_out_values(module: Module) -> None:
    for constant in module.instructions(Opcode.CONSTANT):
        text = constant.payload
        if "..." in text and ELIDED in canonical_literal(text, constant.shape):
            raise cannot_run(constant, VALUES_LEFT_OUT, "HLO502")


def _given(parameters: Sequence[Shape], values: Sequence[Value]) -> Iterator[Array]:
    """The arrays for the entry that `flatten_entry` makes: at their bounds, sizes behind them."""
    for shape, array in zip(parameters, arrays_of(tuple(values)), strict=True):
        dynamic = dynamic_dimensions(shape)
        if dynamic:
            pads = [(0, b - n) for b, n in zip(shape.dimensions, array.shape, strict=True)]
            yield np.pad(array, pads)
        else:
            yield array
        for dimension in dynamic:
            yield np.array(array.shape[dimension], np.int32)


def _result(module: Module, outputs: Sequence[Any]) -> Value:
    """The value of the root from the arrays that XLA returned for a device."""
    given = iter(outputs)
    found: list[Array] = []
    for shape in result_leaves(module):
        array = next(given).astype(dtype_of_shape(shape), copy=False)
        for dimension in dynamic_dimensions(shape):
            array = array.take(range(int(next(given))), dimension)
        found.append(array)
    leaves = iter(found)
    return make_value(module.entry.root.shape, lambda _: next(leaves))


def _short(message: str) -> str:
    """XLA's error in a line, or as much of it as a message may have."""
    line = " ".join(message.split()).replace("<unknown>:0: error: ", "")
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"
