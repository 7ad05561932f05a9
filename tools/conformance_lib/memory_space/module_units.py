"""Records that ask components of memory space assignment about a scheduled module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isclose
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare, declare, within
from conformance_lib.forms import (
    BOOL,
    BOUND,
    INT,
    NUMBER,
    TEXT,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
)
from conformance_lib.memory_space.loop_unit import memory_bound_loop_optimizer
from conformance_lib.memory_space.setting import Answer, Setting, check
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import LEAF, LEAF_SELECTOR, NAME
from conformance_lib.selectors import select_one
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow import Dataflow
from hloopt.ir import Instruction
from hloopt.memory.buffers import Buffer, Buffers
from hloopt.memory_space.costs.costs import OperandPart
from hloopt.memory_space.costs.pickers import (
    CostAnalysisPicker,
    InstructionCountPicker,
    PrefetchIntervalPicker,
)
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.live_ranges import BufferLiveRanges
from hloopt.memory_space.use_site import UseSite

Unit = Callable[[Mapping[str, Any]], Iterator[str]]

_RANGE = row(INT, INT)
_USE = keys({"instruction": NAME, "operand": INT}, {"index": optional_list(INT)})
_PARTS = optional_list(either(INT, row(INT, optional_list(INT))))
"""Operands by number, or by number and shape index."""
_SECONDS = keys(
    {"instruction": NAME},
    {
        "operands_in_alternate_memory": _PARTS,
        "output_in_alternate_memory": either(BOOL, optional_list(optional_list(INT))),
        "compute": NUMBER,
        "memory": NUMBER,
        "overhead": NUMBER,
        "elapsed": NUMBER,
    },
)
_RATIOS = (
    "min_overlap_to_async_copy_ratio",
    "preferred_overlap_to_async_copy_ratio",
    "max_overlap_to_mem_size_async_copy_ratio",
)
_PICKER = either(
    keys({"kind": only("instruction-count"), "min_overlap": INT, "max_overlap": INT}),
    keys({"kind": only("cost-analysis"), **dict.fromkeys(_RATIOS, NUMBER)}),
)
_LEFT = optional_list(row(NAME, NUMBER))
_STEP = {
    "seconds": BOUND,
    "operands_in_alternate_memory": _PARTS,
    "reads_left": _LEFT,
    "writes_left": _LEFT,
}
declare(
    __name__,
    {
        "prefetch_starts": optional_list(INT),
        "latest_prefetch_start": either(INT, keys({"max": INT})),
    },
    use=_USE,
    between=_RANGE,
)
declare(
    __name__,
    {
        "while_multiplier": mapping(TEXT, NUMBER),
        "seconds": _SECONDS,
        "runtime_seconds": BOUND,
        "runtime_seconds_without_copies": BOUND,
        "runtime_steps": list_of(
            either(keys({"done": NAME}, _STEP), keys({"compute": NAME}, _STEP))
        ),
        "live_ranges": mapping(LEAF_SELECTOR, optional_list(_RANGE)),
        "same_buffer": list_of(row(LEAF_SELECTOR, LEAF_SELECTOR)),
    },
)


# -- prefetch-interval-picker ----------------------------------------------------------------------


def _interval_picker(fields: Mapping[str, Any]) -> Iterator[str]:
    setting = Setting(fields)
    picker = _picker(setting)

    def query(expected: Mapping[str, Any]) -> tuple[int, UseSite, int, int]:
        if not {"use", "between"} <= expected.keys():
            raise RecordError("a question about a copy has a 'use' and what it is 'between'")
        use = setting.use(expected["use"])
        return leaf_bytes(use.shape), use, *expected["between"]

    def starts(value: list[int], expected: Mapping[str, Any]) -> Iterator[str]:
        size, use, earliest, end = query(expected)
        yield from compare("prefetch_starts", list(picker.starts(size, use, earliest, end)), value)

    def latest(value: int | Mapping[str, int], expected: Mapping[str, Any]) -> Iterator[str]:
        size, use, earliest, end = query(expected)
        found = picker.latest_prefetch_start(size, earliest, end, use)
        if isinstance(value, int):
            yield from compare("latest_prefetch_start", found, value)
        elif found > value["max"]:
            yield f"latest_prefetch_start: expected at most {value['max']}, found {found}"

    def multiplier(value: Mapping[str, float], _: Mapping[str, Any]) -> Iterator[str]:
        for level, number in value.items():
            found = setting.costs.while_multiplier(int(level))
            yield from compare(f"while_multiplier of level {level}", found, number)

    answers: dict[str, Answer] = {
        "prefetch_starts": starts,
        "latest_prefetch_start": latest,
        "while_multiplier": multiplier,
    }
    yield from check(setting, answers)


def _picker(setting: Setting) -> PrefetchIntervalPicker:
    data: dict[str, Any] = dict(setting.options.get("prefetch_interval_picker", {}))
    if reason := _PICKER.problem(data):
        raise RecordError(f"prefetch_interval_picker: {reason}")
    if data.pop("kind") == "instruction-count":
        return InstructionCountPicker(**data)
    size = setting.options.get("max_size_in_bytes", 0)
    return CostAnalysisPicker(setting.costs, setting.schedule, max_size=size, **data)


# -- memory-space-cost-analysis --------------------------------------------------------------------


def _cost_analysis(fields: Mapping[str, Any]) -> Iterator[str]:
    setting = Setting(fields)
    costs = setting.costs

    def seconds(value: Mapping[str, Any], _: Mapping[str, Any]) -> Iterator[str]:
        instruction = setting.find(value["instruction"])
        operands = _operand_parts(value.get("operands_in_alternate_memory", ()))
        output = value.get("output_in_alternate_memory", False)
        results = [*map(tuple, output)] if isinstance(output, list) else [()] * output
        found = {
            "compute": costs.compute_seconds(instruction),
            "memory": costs.memory_seconds(instruction, operands, results),
            "overhead": costs.overhead_seconds(instruction, operands, results),
            "elapsed": costs.elapsed_seconds(instruction, operands, results),
        }
        for name, number in found.items():
            if name in value:
                what = f"{name} seconds of %{instruction.name}"
                yield from _compare_seconds(what, number, value[name])

    yield from check(setting, {"seconds": seconds})


def _operand_parts(data: Sequence[int | Sequence[Any]]) -> list[OperandPart]:
    return [(part, ()) if isinstance(part, int) else (part[0], tuple(part[1])) for part in data]


def _compare_seconds(what: str, found: float, bound: float | str) -> Iterator[str]:
    is_bound = isinstance(bound, str)
    if not (within(found, bound) if is_bound else isclose(found, float(bound), abs_tol=1e-5)):
        yield f"{what}: expected {bound}, found {found}"


# -- memory-space-runtime --------------------------------------------------------------------------


def _runtime(fields: Mapping[str, Any]) -> Iterator[str]:
    setting = Setting(fields)

    def simulator() -> RuntimeSimulator:
        space = setting.options.get("alternate_memory_space", 0)
        return RuntimeSimulator(setting.costs, setting.schedule, space)

    def seconds(value: float | str, _: Mapping[str, Any]) -> Iterator[str]:
        yield from _compare_seconds("runtime_seconds", simulator().seconds(), value)

    def without_copies(value: float | str, _: Mapping[str, Any]) -> Iterator[str]:
        found = simulator().seconds_without_copies()
        yield from _compare_seconds("runtime_seconds_without_copies", found, value)

    def steps(value: list[Mapping[str, Any]], _: Mapping[str, Any]) -> Iterator[str]:
        run = simulator()
        for name, queue in _queues(run).items():
            outstanding = setting.options.get("outstanding", {})
            queue.update(_copies(setting, outstanding.get(name, ())))
        for step in value:
            yield from _step(setting, run, step)

    answers: dict[str, Answer] = {
        "runtime_seconds": seconds,
        "runtime_seconds_without_copies": without_copies,
        "runtime_steps": steps,
    }
    yield from check(setting, answers)


def _queues(run: RuntimeSimulator) -> dict[str, dict[Instruction, float]]:
    return {"reads": run.queues.reads, "writes": run.queues.writes}


def _copies(setting: Setting, data: Sequence[tuple[str, float]]) -> dict[Instruction, float]:
    return {setting.find(name): size for name, size in data}


def _step(setting: Setting, run: RuntimeSimulator, step: Mapping[str, Any]) -> Iterator[str]:
    instruction = setting.find(step["done"] if "done" in step else step["compute"])
    operands = step.get("operands_in_alternate_memory")
    parts = None if operands is None else _operand_parts(operands)
    seconds = run.step(instruction, parts)
    what = f"step %{instruction.name}"
    if "seconds" in step:
        yield from _compare_seconds(f"{what}: seconds", seconds, step["seconds"])
    for name, queue in _queues(run).items():
        if f"{name}_left" in step:
            expected = _copies(setting, step[f"{name}_left"])
            has_all = list(queue) == list(expected)
            if not has_all or any(not isclose(queue[c], expected[c]) for c in queue):
                found = [[start.name, size] for start, size in queue.items()]
                yield f"{what}: expected {name} {step[f'{name}_left']} to be left, found {found}"


# -- buffer-live-ranges ----------------------------------------------------------------------------


def _live_ranges(fields: Mapping[str, Any]) -> Iterator[str]:
    setting = Setting(fields)
    scene = Scene(setting.module, setting.names, lambda: None)
    flow = Dataflow.of(setting.module)
    buffers = Buffers.of(flow)
    live = BufferLiveRanges(flow, setting.schedule)

    def buffer(text: str) -> Buffer:
        match = LEAF.fullmatch(text)
        index = tuple(map(int, filter(None, match[2].split(",")))) if match else ()
        value = flow.at(select_one(scene, match[1] if match else text), index)
        if value is None:
            raise RecordError(f"{text} holds nothing")
        return buffers.of_value[value]

    def ranges(value: Mapping[str, list[list[int]]], _: Mapping[str, Any]) -> Iterator[str]:
        for text, expected in value.items():
            found = [[first, last] for first, last in live.of_buffer(buffer(text))]
            yield from compare(f"live_ranges of {text}", found, expected)

    def same(value: list[list[str]], _: Mapping[str, Any]) -> Iterator[str]:
        for one, other in value:
            if buffer(one) is not buffer(other):
                yield f"{one} and {other} are not in the same buffer"

    yield from check(setting, {"live_ranges": ranges, "same_buffer": same})


MODULE_UNITS: dict[str, Unit] = {
    "prefetch-interval-picker": _interval_picker,
    "memory-space-cost-analysis": _cost_analysis,
    "memory-space-runtime": _runtime,
    "buffer-live-ranges": _live_ranges,
    "memory-bound-loop-optimizer": memory_bound_loop_optimizer,
}
"""The questions by the pass names of their records."""
