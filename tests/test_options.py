"""Options of passes that Python code gives: each has to be of the type it is declared with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from hloopt.ir import Opcode
from hloopt.options import Bytes, PassOptions, Seconds, option
from hloopt.pass_framework.base import ModulePass
from hloopt.pass_framework.registry import find_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inner(PassOptions):
    seed: int = option(0, "where to begin")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(PassOptions):
    count: int = option(0, "how many")
    share: float = option(0.5, "how much")
    is_fast: bool = option(False, "whether it hurries")
    limit: Bytes | None = option(None, "the most")
    budget: Seconds = option(Seconds(1), "how long")
    mode: Literal["a", "b"] = option("a", "which way")
    opcodes: tuple[Opcode, ...] = option((), "which instructions")
    chosen: bool | Callable[[int], bool] = option(False, "which of them")
    inner: _Inner | None = option(None, "more")
    places: Mapping[Opcode, tuple[int, ...]] | None = option(None, "which operands")


class _Pass(ModulePass):
    Options: ClassVar[type[PassOptions]] = _Options


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"count": 3, "share": 1, "is_fast": True, "limit": 1 << 40, "budget": 2.5, "mode": "b"},
        {"share": 0.25, "opcodes": (Opcode.ADD, Opcode.COPY), "limit": None},
        {"chosen": lambda number: number > 0, "inner": _Inner(seed=1)},
        {"places": {Opcode.DOT: (0, 1)}},
    ],
)
def test_values_of_the_right_types_are_taken(values: dict[str, Any]) -> None:
    assert _Pass(_Options(**values)).options == _Options(**values)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("count", "3", "takes int, not '3', which is of type str"),
        ("count", True, "takes int, not True, which is of type bool"),
        ("count", 1.0, "takes int, not 1.0, which is of type float"),
        ("share", "1", "takes float"),
        ("is_fast", 1, "takes bool"),
        ("limit", "80GiB", r"takes Bytes \| None, not '80GiB'"),
        ("budget", "30s", "takes Seconds, not '30s'"),
        ("mode", "c", r"takes Literal\['a', 'b'\]"),
        ("opcodes", [Opcode.ADD], r"takes tuple\[Opcode, ...\]"),
        ("opcodes", ("add",), r"takes tuple\[Opcode, ...\]"),
        ("chosen", "all", r"takes bool \| Callable"),
        ("inner", {"seed": 1}, r"takes _Inner \| None"),
        ("places", {Opcode.DOT: 0}, r"takes Mapping\[Opcode, tuple\[int, ...\]\] \| None"),
        ("places", {"dot": (0,)}, r"takes Mapping\[Opcode, tuple\[int, ...\]\] \| None"),
    ],
)
def test_a_value_of_another_type_is_a_type_error(name: str, value: object, message: str) -> None:
    values: dict[str, Any] = {name: value}
    with pytest.raises(TypeError, match=f"option '{name}' of _Pass {message}"):
        _Pass(_Options(**values))


def test_options_of_another_pass_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="_Pass takes _Options, not _Inner"):
        _Pass(_Inner())


def test_passes_of_hloopt_check_their_values() -> None:
    combiner = find_pass("all-gather-combiner")
    values: dict[str, Any] = {"combine_threshold_count": "256"}
    with pytest.raises(TypeError, match="of AllGatherCombiner takes int"):
        combiner(combiner.Options(**values))


def test_a_default_of_another_type_fails_under_a_type_checker(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is among the development dependencies")
    program = tmp_path / "declared.py"
    program.write_text(
        "from hloopt.options import option\n"
        'fine: int | None = option(None, "may be left out")\n'
        'wrong: int = option("3", "a number")\n'
    )
    cache = f"--cache-dir={tmp_path / 'cache'}"
    limit = sys.getrecursionlimit()
    try:
        found, _, code = api.run(["--strict", "--follow-imports=silent", cache, str(program)])
    finally:
        sys.setrecursionlimit(limit)  # mypy's own would be that of the tests behind this one
    assert code == 1
    assert [line.split(": ")[0] for line in found.splitlines()[:-1]] == [f"{program}:3"], found
