"""Arrays given in `.npy` and `.npz` files, and results written to them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

import numpy as np

from hloopt.diagnostics import HloError, counted, did_you_mean
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.inputs import GivenKey
from hloopt.interpreter.values import Array, Value, arrays_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction


def read_arrays(
    specifications: Iterable[str], entry: Computation, device_count: int
) -> dict[GivenKey, Array]:
    """The arrays for the parameters of `entry` in files.

    Each specification is `FILE.npz`, whose arrays have keys, or `KEY=FILE.npy`. A key is
    `PARAMETER[:LEAF][@DEVICE]`: the name or number of a parameter, which array of a tuple, whose.
    Raises HloError for files that cannot be read and keys that fit no parameter.
    """
    given: dict[GivenKey, Array] = {}
    for specification in specifications:
        key, separator, path = specification.rpartition("=")
        loaded = _load(path)
        if separator and not isinstance(loaded, dict):
            loaded = {key: loaded}
        elif not isinstance(loaded, dict) or separator:
            raise HloError(
                f"{specification}: which parameter is it for?",
                help="KEY=FILE.npy, or FILE.npz with a key for each array",
                code="HLO506",
            )
        for key, array in loaded.items():
            given[_parse_key(key, entry, device_count, path)] = array
    return given


def _load(path: str) -> Array | dict[str, Array]:
    try:
        with open(path, "rb") as file:
            if not file.read(6).startswith(_MAGIC):
                raise HloError(f"{path} is no .npy or .npz file", help=_WRITERS, code="HLO506")
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else dict(loaded)
    except HloError:
        raise
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    except Exception as error:  # NumPy raises what its parsers raise: zip, pickle, tokenizer
        raise HloError(f"cannot use {path}: {error}", help=_WRITERS, code="HLO506") from None


_MAGIC = (b"\x93NUMPY", b"PK")
_WRITERS = "numpy.save and numpy.savez write such files; arrays of Python objects cannot be used"


def _parse_key(key: str, entry: Computation, device_count: int, path: str) -> GivenKey:
    found = _KEY.fullmatch(key)
    if found is None:
        raise _wrong_key(path, f"'{key}' is no PARAMETER[:LEAF][@DEVICE]")
    parameter = _parameter(found["name"], entry, path)
    leaf, device = int(found["leaf"] or 0), found["device"]
    leaves = len(parameter.shape.leaves())
    if leaf >= leaves:
        count = counted(leaves, "array")
        raise _wrong_key(path, f"'{key}': %{parameter.name} has {count}, counted from 0")
    if device is not None and int(device) >= device_count:
        count = counted(device_count, "device")
        raise _wrong_key(path, f"'{key}': the program runs on {count}, counted from 0")
    return GivenKey(parameter.parameter_number, leaf, None if device is None else int(device))


_KEY = re.compile(r"(?P<name>[^@:]*)(?::(?P<leaf>[0-9]{1,9}))?(?:@(?P<device>[0-9]{1,9}))?")


def _parameter(name: str, entry: Computation, path: str) -> Instruction:
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    by_number = {str(number): parameter for number, parameter in enumerate(entry.parameters)}
    found = by_name.get(name.removeprefix("%")) or by_number.get(name)
    if found is None:
        some = ", ".join(list(by_name)[:10]) + (", …" if len(by_name) > 10 else "")
        hint = did_you_mean(name, by_name) or f"it has {some or 'none'}"
        raise _wrong_key(path, f"'{name}' is not a parameter of the entry", hint)
    return found


def _wrong_key(path: str, reason: str, help: str | None = None) -> RunError:
    return RunError(f"{path}: {reason}", help=help, code="HLO506")


def npz_bytes(results: Sequence[Value], devices: Sequence[Device]) -> bytes:
    """An `.npz` file of the outputs: `0`, `1`, … by leaf; `0@3` of device 3, if there are several.

    Types that NumPy does not know are kept as raw bytes of their width, as NumPy does.
    """
    arrays = {
        f"{leaf}@{device.number}" if len(devices) > 1 else str(leaf): array
        for device, value in zip(devices, results, strict=True)
        for leaf, array in enumerate(arrays_of(value))
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()
