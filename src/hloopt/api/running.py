"""Running a module on arrays: `hloopt.run(module, x, y)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import HloError, counted, with_article
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module

if TYPE_CHECKING:
    from hloopt.interpreter.inputs import GivenKey
    from hloopt.interpreter.values import Array, Value


def run(module: Module, *arguments: Any, seed: int | None = None) -> Any:
    """The value of the entry's root, computed with NumPy: an array, a tuple of values for a tuple.

    Arguments are the values of the entry's parameters, in their order: arrays, what NumPy makes one
    of, tuples for tuples, None for tokens. Those that are left out are made up from `seed`, as
    `hloopt run` makes them, if one is given.

    A module that is for several devices runs on all of them, and the result is a list with the
    value of each. An argument is given to all; where parameters have shardings it may be the whole
    array, of which each device takes its part.

    Raises HloError for arguments that do not fit and for what cannot run, at the instruction.
    """
    from hloopt.equivalence import RunSettings
    from hloopt.interpreter.inputs import Inputs

    given = _given(module, arguments)
    inputs = Inputs(given=given)
    if seed is None:
        _check_complete(module, len(arguments))
    settings = RunSettings(inputs=inputs, stand_ins=False)
    results = settings.run_made_up(settings.place(module), 0 if seed is None else seed)
    return results[0] if len(results) == 1 else results


def _given(module: Module, arguments: tuple[Any, ...]) -> dict[GivenKey, Array]:
    """The arrays of the arguments. Raises HloError where there are too many, or tuples differ."""
    import numpy as np

    from hloopt.interpreter.inputs import GivenKey

    parameters = module.entry.parameters
    if len(arguments) > len(parameters):
        takes = counted(len(parameters), "parameter")
        raise HloError(
            f"the entry has {takes}, {counted(len(arguments), 'argument')} given", code="HLO506"
        )
    given: dict[GivenKey, Array] = {}
    for parameter, argument in zip(parameters, arguments, strict=False):
        leaves = list(_leaves(argument))
        shapes = parameter.shape.leaves()
        if len(leaves) != len(shapes) or isinstance(argument, tuple) != parameter.shape.is_tuple:
            raise _misfit(module, parameter, counted(len(leaves), "array"))
        for number, (leaf, shape) in enumerate(zip(leaves, shapes, strict=True)):
            if not shape.is_token:
                try:
                    array = np.asarray(leaf)
                except ValueError:  # rows of different lengths
                    array = np.empty((), object)
                if array.dtype.kind in "OUS":
                    raise _misfit(module, parameter, with_article(type(leaf).__name__))
                given[GivenKey(parameter.parameter_number, number)] = array
    return given


def _leaves(value: Value) -> Iterator[Value]:
    """All that is not a tuple in a value, in order."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += reversed(value)
        else:
            yield value


def _misfit(module: Module, parameter: Instruction, what: str) -> HloError:
    return HloError(
        f"the argument for %{parameter.name} is {what}, the parameter {parameter.shape.text}",
        span=module.span_of(parameter),
        help="tuples for tuples, else arrays",
        code="HLO506",
    )


def _check_complete(module: Module, count: int) -> None:
    """Raise HloError for parameters without a value."""
    if missing := module.entry.parameters[count:]:
        names = ", ".join(f"%{parameter.name}" for parameter in missing[:_MOST_NAMED])
        more = ", …" if len(missing) > _MOST_NAMED else ""
        raise HloError(
            f"no argument for {counted(len(missing), 'parameter')}: {names}{more}",
            span=module.span_of(missing[0]),
            help="seed=0 makes them up",
            code="HLO506",
        )


_MOST_NAMED = 5
