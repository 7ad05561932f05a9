"""Targets from files: those of the package by name, others by path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.read_log import note_read
from hloopt.targets.gpu import CudaDevice, Gpu, Network
from hloopt.targets.native_types import NATIVE_FOLDER, NativeType, NativeTypes, native_names
from hloopt.targets.performance import table_names
from hloopt.targets.target import Link, Target
from hloopt.yaml_nodes import NotYaml, compose

if TYPE_CHECKING:
    from yaml import Node

_FIELDS = {
    "title": str,
    "matrix_teraflops": dict,
    "matrix_source": str,
    "vector_teraflops": dict,
    "vector_source": str,
    "memory": dict,
    "memory_source": str,
    "memory_spaces_mebibytes": dict,
    "memory_spaces_gigabytes_per_second": dict,
    "memory_spaces_source": str,
    "links": dict,
    "gpu": dict,
    "cuda": dict,
    "native_types": str | dict,
}
_OPTIONAL = (
    *("vector_teraflops", "vector_source"),
    *("memory_spaces_mebibytes", "memory_spaces_gigabytes_per_second", "memory_spaces_source"),
    *("links", "gpu", "cuda", "native_types"),
)
_SPACES = ("VMEM", "SMEM")
_RATES = ("s4", "s8", "s32", "f4", "f8", "bf16", "f16", "f32", "f64")


_OWN_FOLDER = Path(__file__).parent


def target_names() -> list[str]:
    """The targets of the package, sorted."""
    return sorted(path.stem for path in _OWN_FOLDER.glob("*.yaml"))


def load_target(name: str) -> Target:
    """A target by its name (`-` and `_` are one), or from a `.yaml` file. Raises HloError."""
    return _read(_path_of(name))


def check_target(name: str) -> None:
    """Raise HloError for the name of no target; a file need not be there yet."""
    _path_of(name)


def _path_of(name: str) -> Path:
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    known = name.replace("-", "_").lower()
    if known not in target_names():
        hint = did_you_mean(known, target_names())
        raise HloError(
            f"no target '{name}'",
            help=hint or f"{', '.join(target_names())}, or a file *.yaml",
            code="HLO014",
        )
    return Path(__file__).with_name(f"{known}.yaml")


def _parse(path: Path) -> object:
    import yaml

    try:
        data = path.read_bytes()
        if not path.is_relative_to(_OWN_FOLDER):
            note_read(str(path), data)
        root = compose(data.decode("utf-8"))
        if root is not None:
            _refuse_repeated_keys(root, path)
        return None if root is None else yaml.SafeLoader("").construct_document(root)
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror}") from None
    except NotYaml as error:
        deep = f"{path}: the YAML is nested too deeply"
        raise HloError(deep if error.is_depth else f"{path} is no YAML: {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise HloError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise HloError(f"{path}: the YAML is nested too deeply") from None
    except (
        ValueError,
        LookupError,
        AttributeError,
    ) as error:  # 2020-99-99, !!int x
        raise HloError(f"{path}: a value that does not fit its type: {error}") from None


def _refuse_repeated_keys(root: Node, path: Path) -> None:
    """YAML forbids them, and its library takes the last. Raises HloError."""
    import yaml

    waiting: list[Node] = [root]
    seen: set[int] = set()  # an alias is the same node again
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                line = key.start_mark.line + 1
                raise HloError(f"{path}:{line}: key '{key.value}' is given twice")
            keys.add(str(key.value))
            waiting.append(value)


def _read(path: Path) -> Target:
    fields = _checked(_parse(path), _FIELDS, _OPTIONAL, f"{path}")
    memory = _numbers(fields["memory"], ("gigabytes", "gigabytes_per_second"), f"{path}: memory")
    if len(memory) < 2:
        raise HloError(f"{path}: memory needs gigabytes and gigabytes_per_second")
    if not fields["matrix_teraflops"]:
        raise HloError(f"{path}: matrix_teraflops needs a rate", help=", ".join(_RATES))
    links = tuple(_link(key, value, path) for key, value in fields.get("links", {}).items())
    return Target(
        path.stem,
        fields["title"],
        _rates(fields["matrix_teraflops"], f"{path}: matrix_teraflops"),
        _rates(fields.get("vector_teraflops", {}), f"{path}: vector_teraflops"),
        round(memory["gigabytes"] * 1e9),
        memory["gigabytes_per_second"] * 1e9,
        links,
        tuple(
            f"{part}: {fields[f'{part}_source']}"
            for part in ("matrix", "vector", "memory", "memory_spaces")
            if f"{part}_source" in fields
        ),
        _gpu(fields["gpu"], f"{path}: gpu") if "gpu" in fields else None,
        _cuda(fields, f"{path}: cuda") if "cuda" in fields else None,
        *_spaces(fields, path),
        _native_types(fields["native_types"], path) if "native_types" in fields else None,
    )


def _link(name: str, data: Any, path: Path) -> Link:
    place = f"{path}: link {name}"
    fields = _checked(data, {"gigabytes_per_second": object, "source": str}, (), place)
    rate = {"gigabytes_per_second": fields["gigabytes_per_second"]}
    (bandwidth,) = _numbers(rate, tuple(rate), place).values()
    return Link(str(name), bandwidth * 1e9, fields["source"])


_GPU = ("cores", "units_per_core", "gigahertz", "l2_bytes")
_NETWORK = (
    *("launch_us", "card_gigabytes_per_second", "chunk_us", "chunk_bytes", "round_trip_us"),
    *("node_size", "partition_size", "lanes", "lane_gigabytes_per_second", "barrier_us"),
)


def _gpu(data: dict[str, Any], place: str) -> Gpu:
    kinds = {
        **dict.fromkeys(_GPU, object),
        **{"tables": str, "kernel_formula": bool, "network": dict, "source": str},
    }
    fields = _checked(data, kinds, ("tables", "kernel_formula"), place)
    tables = fields.get("tables")
    device = _numbers({name: fields[name] for name in _GPU}, _GPU, place)
    parts = dict.fromkeys(_NETWORK, object)
    network = _numbers(
        _checked(fields["network"], parts, ("partition_size",), f"{place}: network"),
        _NETWORK,
        f"{place}: network",
    )
    if tables is not None and tables not in table_names():
        hint = did_you_mean(tables, table_names())
        raise HloError(f"{place}: no tables '{tables}'", help=hint or ", ".join(table_names()))
    return Gpu(
        cores=round(device["cores"]),
        units_per_core=round(device["units_per_core"]),
        clock=device["gigahertz"] * 1e9,
        l2_size=round(device["l2_bytes"]),
        tables=tables,
        kernel_formula=fields.get("kernel_formula", tables is None),
        network=Network(
            launch=network["launch_us"],
            card_bandwidth=network["card_gigabytes_per_second"] * 1e9,
            chunk_time=network["chunk_us"],
            chunk_size=round(network["chunk_bytes"]),
            round_trip=network["round_trip_us"],
            node_size=round(network["node_size"]),
            partition_size=round(network.get("partition_size", network["node_size"])),
            lanes=round(network["lanes"]),
            lane_bandwidth=network["lane_gigabytes_per_second"] * 1e9,
            barrier=network["barrier_us"],
        ),
        source=fields["source"],
    )


def _cuda(target: dict[str, Any], place: str) -> CudaDevice:
    """The section `cuda`; figures that `gpu` has are not repeated."""
    shared = {name: target["gpu"][name] for name in _GPU} if "gpu" in target else {}
    kinds = {"compute_capability": str, "name": str, **dict.fromkeys(_GPU, object)}
    fields = _checked({**shared, **target["cuda"]}, kinds, (), place)
    device = _numbers({name: fields[name] for name in _GPU}, _GPU, place)
    return CudaDevice(
        compute_capability=fields["compute_capability"],
        name=fields["name"],
        cores=round(device["cores"]),
        units_per_core=round(device["units_per_core"]),
        clock=device["gigahertz"] * 1e9,
        l2_size=round(device["l2_bytes"]),
    )


def _native_types(data: str | dict[str, Any], path: Path) -> NativeTypes:
    """Native types as a target's own, or by the name of those that several targets share."""
    place = f"{path}: native_types"
    if isinstance(data, str):
        if data not in native_names():
            hint = did_you_mean(data, native_names())
            raise HloError(f"{place}: no '{data}'", help=hint or ", ".join(native_names()))
        return _shared_native_types(data)
    fields = _checked(data, {"source": str, "types": dict}, (), place)
    types = {
        str(name): _native_type(of, f"{place}: {name}") for name, of in fields["types"].items()
    }
    return NativeTypes(types=types, source=fields["source"])


@cache
def _shared_native_types(name: str) -> NativeTypes:
    path = NATIVE_FOLDER / f"{name}.yaml"
    data = _parse(path)
    assert isinstance(data, dict)  # it is ours
    return _native_types(data, path)


def _native_type(data: Any, place: str) -> NativeType:
    parts = ("opcodes", "applied", "widening", "mixing")
    fields = _checked(data, dict.fromkeys(parts, list), parts, place)
    for part, opcodes in fields.items():
        for opcode in opcodes:
            if not isinstance(opcode, str):
                raise HloError(f"{place}: {part} has {opcode!r}, not an opcode")
    return NativeType(**{part: frozenset(opcodes) for part, opcodes in fields.items()})


def _rates(data: dict[str, Any], place: str) -> dict[str, float]:
    return {name: rate * 1e12 for name, rate in _numbers(data, _RATES, place).items()}


def _spaces(fields: dict[str, Any], path: Path) -> tuple[dict[str, int], dict[str, float]]:
    """The bytes and the rates of other memories, of each those that are known."""
    size, rate = "memory_spaces_mebibytes", "memory_spaces_gigabytes_per_second"
    sizes = _numbers(fields.get(size, {}), _SPACES, f"{path}: {size}")
    rates = _numbers(fields.get(rate, {}), _SPACES, f"{path}: {rate}")
    return (
        {name: round(mebibytes * 2**20) for name, mebibytes in sizes.items()},
        {name: gigabytes * 1e9 for name, gigabytes in rates.items()},
    )


def _numbers(data: dict[str, Any], known: tuple[str, ...], place: str) -> dict[str, float]:
    """Positive numbers under known names."""
    for name, value in data.items():
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise HloError(f"{place} has no '{name}'", help=hint or ", ".join(known))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise HloError(f"{place}: {name} is {value!r}, not a positive number")
    return {name: float(value) for name, value in data.items()}


def _checked(
    data: Any, kinds: Mapping[str, Any], optional: tuple[str, ...], place: str
) -> dict[str, Any]:
    """A mapping that has these fields and no others."""
    if not isinstance(data, dict):
        raise HloError(f"{place}: expected a mapping with {', '.join(kinds)}")
    for name, value in data.items():
        if name not in kinds:
            hint = did_you_mean(str(name), kinds)
            raise HloError(f"{place} has no field '{name}'", help=hint or ", ".join(kinds))
        if not isinstance(value, kinds[name]):
            raise HloError(f"{place}: {name} is {value!r}, not a {_KIND_NAMES[kinds[name]]}")
    for name in kinds:
        if name not in data and name not in optional:
            raise HloError(f"{place}: {name} is missing")
    return data


_KIND_NAMES: dict[Any, str] = {
    **{str: "text", dict: "mapping", list: "list", bool: "boolean"},
    str | dict: "name or mapping",
}
