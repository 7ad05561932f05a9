"""Random programs for the scheduler: valid, the same each time; verdicts and reductions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.passes.scheduling.test_stuck_groups import BESIDE

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from schedule_fuzz_lib.compiler import Answer
from schedule_fuzz_lib.generate import program
from schedule_fuzz_lib.judge import first_difference, judge
from schedule_fuzz_lib.reduction import reduced
from schedule_fuzz_lib.settings import SETTINGS
from schedule_fuzz_lib.subject import Programs, outcome_table, setting_of

_FEATURES = {
    *("async-start", "calls", "conditionals", "control edges", "copies", "copies of slices"),
    *("custom calls", "fusions", "groups", "hints", "loops", "nested loops", "send and recv"),
    *("stream of transfers", "synchronous collectives", "synchronous starts", "threads"),
    "updates in place",
}


def test_programs_are_valid_and_the_same_each_time() -> None:
    made = [program(5, number) for number in range(40)]
    texts = [each.text() for each in made]
    assert texts == [program(5, number).text() for number in range(40)]
    assert [verify_module(parse_module(text), ANY_TARGET) for text in texts] == [[]] * 40
    assert set().union(*(each.features for each in made)) == _FEATURES


def test_a_program_without_some_steps_is_valid() -> None:
    for number in range(20):
        steps = program(5, number).steps
        fewer = program(5, number, steps[::2])
        assert not {*steps[::2]} & {*fewer.steps}
        assert verify_module(parse_module(fewer.text()), ANY_TARGET) == []


def test_every_setting_has_its_block_and_options_that_the_pass_takes() -> None:
    assert [setting_of(n * Programs.block + 1) for n in range(len(SETTINGS))] == [*SETTINGS]
    for setting in SETTINGS:
        create_pass("latency-hiding-scheduler", setting.all_options())
        assert len(setting.flags()) == 1 + len(setting.options)


def _answered(number: int) -> Answer:
    """A program, and our own schedule in the place of the compiler's."""
    text = program(5, number).text()
    module = parse_module(text)
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    options = {"keep_sync_annotation": "gpu-gemms"}
    create_pass("legalize-scheduling-annotations", options).run(module, PassContext())
    before = print_module(module)
    scheduler = create_pass("latency-hiding-scheduler", SETTINGS[0].all_options())
    scheduler.run(module, PassContext())
    return Answer(text, before, print_module(module))


def test_an_answer_is_compared_with_orders_of_our_own() -> None:
    answer = _answered(0)
    verdict = judge(answer.given, SETTINGS[0], answer, {})
    assert verdict.counts["equal chains"] == verdict.counts["computations"] == 1
    other = Answer(answer.given, answer.before, answer.before)
    problem = judge(other.given, SETTINGS[0], other, {}).problem
    assert problem is not None
    assert judge("", SETTINGS[0], Answer(loss="it died"), {}).counts == {"lost": 1}


def test_a_group_that_a_remark_calls_refused_is_explained_where_xla_refuses_only() -> None:
    setting = next(setting for setting in SETTINGS if setting.name == "overlap 2")
    given = BESIDE.replace("is_scheduled=true, ", "")
    refused = Answer(given, refusal="Couldn't find an annotated node to schedule.")
    verdict = judge(given, setting, refused, {})
    assert verdict.counts == {"refused": 1, "refused as we say": 1}
    assert verdict.other_problems == []
    otherwise = Answer(given, refusal="Not all instructions have been scheduled")
    verdict = judge(given, setting, otherwise, {})
    assert verdict.counts == {"refused": 1, "refused by XLA alone": 1}
    problem = judge(given, setting, Answer(given, BESIDE, BESIDE), {}).problem
    assert problem is not None
    assert "XLA schedules a group" in str(problem)


def test_the_first_difference_is_that_nearest_to_the_end() -> None:
    found = first_difference({"e": ["b", "a", "d", "c", "r"]}, {"e": ["a", "b", "c", "d", "r"]})
    assert found == "%e: 4 of 5 elsewhere, from the end first %c, XLA %d, before %r"
    assert first_difference({"e": ["a"]}, {"e": ["a"]}) == ""


def test_reduction_leaves_out_what_is_not_needed() -> None:
    needed = {"e:3", "e:17"}
    steps = [f"e:{number}" for number in range(40)]

    def fails(candidates: Sequence[frozenset[str]]) -> list[bool]:
        return [not needed & skipped for skipped in candidates]

    skipped = reduced(lambda left_out: [s for s in steps if s not in left_out], fails, 60)
    assert {*steps} - skipped == needed


def test_the_table_has_a_row_for_each_setting_and_feature() -> None:
    counts = {"computations": 4, "equal": 3, "chains": 4, "equal chains": 2}
    scenes = ("", "loops: ", "setting default: ")
    outcomes = Counter({scene + what: n for scene in scenes for what, n in counts.items()})
    rows = outcome_table(outcomes).splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["setting default", "loops", "**all**"]
    assert rows[-1] == "| **all** | 4 | 3 | 75.00% | 2 |"


def test_a_program_can_be_shown_without_a_compiler() -> None:
    tool = Path(__file__).parents[2] / "tools" / "schedule_fuzz.py"
    command = [sys.executable, str(tool), "--seed", "5", "--show", "21"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("// setting: overlap 2\nHloModule m21")
    assert shown.encode() == Programs(5, Path(), "").content(21)
