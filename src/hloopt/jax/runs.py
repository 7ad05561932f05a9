"""Programs of JAX run twice on the same arguments: by the interpreter, and by what JAX compiled."""

# jax is typed in part only:
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hloopt.diagnostics import HloError, counted
from hloopt.jax.programs import Stage, compiled_of, import_jax, lowered_of
from hloopt.jax.programs import module as module_of_program

if TYPE_CHECKING:
    from hloopt.interpreter.values import Array, Value
    from hloopt.ir.module import Module


@dataclass(frozen=True, slots=True)
class Run:
    """The results of a program, as its function returns them."""

    ours: Any
    """The interpreter's, with arrays of NumPy."""
    theirs: Any
    """The compiled program's, with arrays of JAX."""
    difference: float
    """The largest distance of two elements; infinite where only one is finite, 0 for NaNs."""


class _Leaf(NamedTuple):
    """An array among the arguments or results, and where its parts are."""

    array: Any
    sharding: Any
    """None for an argument that the program does not use."""


def run(program: Any, /, *args: Any, stage: Stage = "after", **kwargs: Any) -> Run:
    """Run a program by the interpreter and as JAX compiled it, and compare what they return.

    The interpreter runs the module of `stage`, with NumPy: on all devices where it is partitioned.
    `program` is a jitted function, or what was lowered or compiled of one; donated arguments stay
    as they are. Typed PRNG keys count as their data.

    Raises HloError for what is not supported: static arguments, replicas, several processes,
    constants that are arguments; RunError for what the interpreter does not know.
    """
    jax = import_jax()
    is_jitted = not hasattr(program, "as_text")
    lowered = lowered_of(program, args, kwargs) if is_jitted else program
    compiled = compiled_of(lowered, (), {})
    arguments = _arguments(compiled, args, kwargs)
    module = module_of_program(compiled if stage == "after" else lowered, stage=stage)
    is_partitioned = stage != "before"
    is_donated = [info.donated for info in jax.tree.leaves(compiled.args_info)]
    copies = [
        jax.device_put(leaf.array, leaf.sharding, may_alias=False) if donated else leaf.array
        for leaf, donated in zip(arguments, is_donated, strict=True)
    ]
    devices = _devices(compiled, module)
    ours_by_device = _interpret(module, devices if is_partitioned else [], arguments)
    call_args, call_kwargs = jax.tree.unflatten(compiled.in_tree, copies)
    theirs = compiled(*call_args, **call_kwargs)
    results = _leaves(compiled.out_tree, theirs, compiled.output_shardings)
    ours = _assemble(devices if is_partitioned else [], ours_by_device, results)
    tree = jax.tree.unflatten(compiled.out_tree, ours)
    return Run(tree, theirs, _difference(ours, [_plain(leaf.array) for leaf in results]))


def _arguments(compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Leaf]:
    """The arrays of the arguments. Raises HloError where they are not all arrays."""
    jax = import_jax()
    if jax.tree.structure((args, kwargs)) != compiled.in_tree:
        raise HloError(
            "run does not support static arguments",
            help="jit a function without them: jax.jit(functools.partial(f, n=8))",
        )
    found = _leaves(compiled.in_tree, (args, kwargs), compiled.input_shardings)
    if any(isinstance(leaf.array, jax.ShapeDtypeStruct) for leaf in found):
        raise HloError("run needs arrays as arguments: a ShapeDtypeStruct has no values")
    return found


def _leaves(tree: Any, values: Any, shardings: Any) -> list[_Leaf]:
    """The leaves of a tree with their shardings."""
    pairs = zip(tree.flatten_up_to(values), tree.flatten_up_to(shardings), strict=True)
    return [_Leaf(*pair) for pair in pairs]


def _devices(compiled: Any, module: Module) -> list[Any]:
    """JAX's devices by the number of their partition. Raises HloError where not all are here."""
    if module.replica_count > 1:
        raise HloError(f"run does not support replicas: {module.name} has {module.replica_count}")
    devices = list(compiled.runtime_executable().local_devices())
    if len(devices) != module.num_partitions:
        raise HloError(
            f"run does not support programs of several processes: {module.name} is for "
            f"{counted(module.num_partitions, 'device')}, {len(devices)} of them here"
        )
    return devices


def _interpret(module: Module, devices: Sequence[Any], arguments: Sequence[_Leaf]) -> list[Value]:
    """The value of the root on each of `devices`, by their parts of the arguments.

    With no devices the module is not partitioned, and each that runs it has whole arrays. Raises
    HloError.
    """
    from hloopt.equivalence.placement import place
    from hloopt.interpreter.machine import run_module
    from hloopt.interpreter.values import dtype_of_shape

    used = [leaf for leaf in arguments if leaf.sharding is not None]
    shapes = [parameter.shape for parameter in module.entry.parameters]
    if len(shapes) != len(used) or not all(shape.is_array for shape in shapes):
        raise HloError(
            f"run does not support this program: it uses {counted(len(used), 'argument')}, "
            f"its module has {counted(len(shapes), 'parameter')}",
            help="constants that JAX makes arguments, and tuples of arguments, are not supported",
        )
    arrays = [
        _plain(leaf.array).astype(dtype_of_shape(shape), copy=False)
        for leaf, shape in zip(used, shapes, strict=True)
    ]
    placement = place(module, is_whole=not devices)
    parts = [_places(leaf) for leaf in used] if devices else []
    values: list[list[Value]] = [
        [array[part[device]] for array, part in zip(arrays, parts, strict=True)]
        for device in devices
    ] or [[*arrays] for _ in placement.devices]
    return run_module(placement.program, values, devices=placement.devices)


def _assemble(
    devices: Sequence[Any], values: Sequence[Value], results: Sequence[_Leaf]
) -> list[Array]:
    """The whole arrays of the results, from what each of `devices` has; with none all are whole."""
    import numpy as np

    from hloopt.interpreter.values import arrays_of

    by_device = [list(arrays_of(value)) for value in values]
    if len(by_device[0]) != len(results):
        raise HloError(
            f"run does not support this program: it returns {counted(len(results), 'array')}, "
            f"its module {len(by_device[0])}"
        )
    if not devices:
        return by_device[0]
    found = []
    for number, leaf in enumerate(results):
        whole = np.empty(_plain(leaf.array).shape, by_device[0][number].dtype)
        places = _places(leaf)
        for device, arrays in zip(devices, by_device, strict=True):
            whole[places[device]] = arrays[number]
        found.append(whole)
    return found


def _places(leaf: _Leaf) -> dict[Any, tuple[slice, ...]]:
    """The part of an array that each device has."""
    import numpy as np

    return leaf.sharding.devices_indices_map(np.shape(leaf.array))


def _plain(array: Any) -> Array:
    """An array as NumPy has it; of typed keys their data."""
    import numpy as np

    jax = import_jax()
    if isinstance(array, jax.Array) and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array)


def _difference(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """The largest difference of two arrays of any pair; infinite where sizes or types differ."""
    from math import inf

    from hloopt.equivalence.measures import errors_of

    return max(
        (
            errors_of(left, right).largest
            if (left.shape, left.dtype) == (right.shape, right.dtype)
            else inf
            for left, right in zip(ours, theirs, strict=True)
        ),
        default=0.0,
    )
