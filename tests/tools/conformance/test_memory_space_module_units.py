"""Records about costs, interval pickers, run times and live ranges of memory space assignment."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.pass_framework.registry import create_pass

TEXT = """HloModule m, is_scheduled=true
ENTRY e { p = f32[8] parameter(0)
  q = f32[8]{0:S(1)} parameter(1)
  s = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(p)
  a = f32[8] negate(p)
  b = f32[8] negate(a)
  c = f32[8] add(b, q)
  d = f32[8]{0:S(1)} copy-done(s)
  ROOT t = (f32[8], f32[8]{0:S(1)}) tuple(c, d) }
"""
RATES = {
    "flops_per_second": 8,
    "default_mem_bandwidth_bytes_per_second": 32,
    "alternate_mem_read_bandwidth_bytes_per_second": 64,
    "alternate_mem_write_bandwidth_bytes_per_second": 64,
    "pipeline_overhead_window_size_in_bytes": 32,
}
COUNTING = {"kind": "instruction-count", "min_overlap": 1, "max_overlap": 3}


def failures(pass_name: str, *expect: dict[str, Any], **options: object) -> list[str]:
    fields = {"id": "t", "pass": pass_name, "hlo": TEXT, "options": options, "expect": [*expect]}
    return run_record(Record("t", fields), create_pass).failures


def pick(*expect: dict[str, Any], **picker: object) -> list[str]:
    options = {"prefetch_interval_picker": picker or COUNTING, "cost_model": RATES}
    return failures("prefetch-interval-picker", *expect, **options)


USE = {"use": {"instruction": "c", "operand": 0}, "between": [0, 5]}


def test_pickers_of_both_kinds_answer() -> None:
    assert pick({"prefetch_starts": [2, 3], **USE}, {"latest_prefetch_start": 3, **USE}) == []
    assert pick({"latest_prefetch_start": {"max": 3}, **USE}, {"while_multiplier": {"2": 25}}) == []
    (starts,) = pick({"prefetch_starts": [2], **USE})
    assert starts == "prefetch_starts: expected [2], found [2, 3]"
    (latest,) = pick({"latest_prefetch_start": {"max": 2}, **USE})
    assert latest == "latest_prefetch_start: expected at most 2, found 3"
    (multiplier,) = pick({"while_multiplier": {"1": 3}})
    assert "expected 3, found 5" in multiplier


@pytest.mark.parametrize(
    ("expected", "picker", "message"),
    [
        ({"prefetch_starts": []}, {}, "a question about a copy has a 'use'"),
        ({"prefetch_start": []}, {}, "did you mean 'prefetch_starts'?"),
        ({"runtime_seconds": 1}, {}, "nothing of runtime_seconds can be asked"),
        ({"prefetch_starts": [], **USE}, {"kind": "cost-analysis"}, "is missing"),
        (
            {"prefetch_starts": [], "between": [0, 1], "use": {"instruction": "x", "operand": 0}},
            {},
            "%x is not in the module",
        ),
        (
            {"prefetch_starts": [], "between": [0, 1], "use": {"instruction": "c", "operand": 2}},
            {},
            "%c has no operand 2",
        ),
    ],
)
def test_questions_that_make_no_sense(
    expected: dict[str, Any], picker: dict[str, object], message: str
) -> None:
    (failure,) = pick(expected, **picker)
    assert message in failure


@pytest.mark.parametrize(
    "seconds",
    [
        {"compute": 1, "memory": 3, "overhead": 1 / 3, "elapsed": 3 + 1 / 3},
        {"operands_in_alternate_memory": [], "memory": 3},
        {"operands_in_alternate_memory": [0], "memory": 2.5},
        {"operands_in_alternate_memory": [[1, []]], "memory": 2.5},
        {"output_in_alternate_memory": False, "memory": 3},
        {"output_in_alternate_memory": True, "memory": 2.5, "elapsed": 2.5 + 1 / 3},
        {"output_in_alternate_memory": [[]], "memory": 2.5},
    ],
)
def test_seconds(seconds: dict[str, Any]) -> None:
    expected = {"seconds": {"instruction": "c", **seconds}}
    assert failures("memory-space-cost-analysis", expected, cost_model=RATES) == []
    name = next(reversed(seconds))
    wrong = {"seconds": {"instruction": "c", **seconds, name: seconds[name] + 1e-4}}
    (failure,) = failures("memory-space-cost-analysis", wrong, cost_model=RATES)
    assert failure.startswith(f"{name} seconds of %c: expected")


def run(*expect: dict[str, Any], **outstanding: object) -> list[str]:
    rates = {**RATES, "pipeline_overhead_window_size_in_bytes": 0}
    options = {"cost_model": rates, "alternate_memory_space": 1}
    return failures("memory-space-runtime", *expect, **options, outstanding=outstanding)


def test_run_times_are_numbers_or_bounds() -> None:
    whole = 2 + 2 + 2.5 + 16 / 32
    idle = 0.5  # while c reads q; what is left of the copy has to be waited for
    assert run({"runtime_seconds_without_copies": whole}) == []
    assert run({"runtime_seconds": whole + 1 - idle}, {"runtime_seconds": ">7"}) == []
    (failure,) = run({"runtime_seconds": "<7"})
    assert failure == "runtime_seconds: expected <7, found 7.5"


def test_steps_go_on_from_the_outstanding_copies() -> None:
    steps = [
        {"compute": "c", "seconds": 2.5, "reads_left": [["s", 80]], "writes_left": []},
        {"compute": "c", "operands_in_alternate_memory": [], "reads_left": [["s", 80]]},
        {"compute": "c", "operands_in_alternate_memory": [0, 1], "reads_left": [["s", 48]]},
        {"done": "d", "seconds": "<2", "reads_left": []},
        {"done": "d", "seconds": 0},
    ]
    assert run({"runtime_steps": steps}, reads=[["s", 96]], writes=[]) == []
    (failure,) = run({"runtime_steps": [{"done": "d", "reads_left": [["s", 1]]}]}, reads=[["s", 9]])
    assert failure == "step %d: expected reads [['s', 1]] to be left, found []"
    (failure,) = run({"runtime_steps": [{"seconds": 1}]})
    assert "'compute' is missing" in failure


def test_live_ranges() -> None:
    def ask(expected: dict[str, Any]) -> list[str]:
        return failures("buffer-live-ranges", expected)

    assert ask({"live_ranges": {"%a": [[3, 4]], "%s{0}": [[2, 7]], "%t{}": [[7, 7]]}}) == []
    assert ask({"live_ranges": {"root{0}": [[5, 7]]}, "same_buffer": [["%d", "%s{0}"]]}) == []
    (failure,) = ask({"live_ranges": {"%a": [[3, 5]]}})
    assert failure == "live_ranges of %a: expected [[3, 5]], found [[3, 4]]"
    (failure,) = ask({"same_buffer": [["%a", "%b"]]})
    assert failure == "%a and %b are not in the same buffer"
    (failure,) = ask({"live_ranges": {"%a{0}": [[3, 4]]}})
    assert failure == "%a{0} holds nothing"


def test_an_unknown_rate_is_an_error() -> None:
    expected = {"seconds": {"instruction": "c", "compute": 1}}
    (failure,) = failures("memory-space-cost-analysis", expected, cost_model={"flops": 1})
    assert "cost_model has no option 'flops'" in failure
