"""Trials in processes: time limits, processes that end, order, what is remembered."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from hloopt.diagnostics import HloError
from hloopt.reduction.asking import NotShown, ask
from hloopt.reduction.journal import Journal
from hloopt.reduction.outcomes import NOT_SHOWN, Outcome, Verdict, unknown
from hloopt.reduction.trials import HANGS, TimeLimit, Trials

SHOWN = Outcome(Verdict.SHOWN, "s", "it is so")
LIMIT = TimeLimit(30)


@dataclass(frozen=True)
class Obeys:
    """Does what the text says."""

    folder: str = ""
    needs_valid: ClassVar[bool] = False
    starts_processes: ClassVar[bool] = False

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        match text.split():
            case ["hang", *_]:
                time.sleep(60)
            case ["die"]:
                os.kill(os.getpid(), signal.SIGSEGV)
            case ["slow", *_]:
                time.sleep(0.3)
                return SHOWN
            case ["unknown"]:
                return unknown("who knows")
            case ["flaky"]:
                count = len(list(Path(self.folder).iterdir()))
                (Path(self.folder) / str(count)).touch()
                return SHOWN if count % 2 else NOT_SHOWN
            case ["shown", *_]:
                return SHOWN
        return NOT_SHOWN

    def narrowed(self, text: str, outcome: Outcome) -> Obeys:
        return self

    def describe(self) -> str:
        return "it is so"

    def command(self, path: str) -> str:
        return f"obey {path}"


def test_what_takes_too_long_is_not_shown_unless_that_is_asked() -> None:
    for is_shown in (False, True):
        with Trials(Obeys(), TimeLimit(0.2, is_shown)) as trials:
            outcome = trials.outcome("hang")
        assert (outcome.is_shown, outcome.signature) == (is_shown, HANGS)


def test_a_candidate_hangs_that_takes_many_times_longer_than_those_that_end() -> None:
    def accept(text: str, outcome: Outcome) -> bool:
        return outcome.is_shown

    with Trials(Obeys(), TimeLimit(20, is_shown=True)) as trials:
        started = time.monotonic()
        assert trials.first(iter(["no", "hang"]), accept) == 1
        assert time.monotonic() - started < 10
    with Trials(Obeys(), TimeLimit(2, is_shown=True)) as trials:
        assert trials.first(iter(["no", "hang"]), accept) == 1
        count = trials.count
        trials.take_time()
        started = time.monotonic()
        assert trials.first(iter(["hang"]), accept) == 0
        assert trials.count == count + 1
        assert time.monotonic() - started >= 2


def test_one_that_does_not_look_for_hangs_gives_each_candidate_the_whole_limit() -> None:
    with Trials(Obeys(), TimeLimit(20)) as trials:
        assert trials.first(iter(["no", "slow"]), lambda _, outcome: outcome.is_shown) == 1


def test_a_process_that_ends_is_a_failure_of_its_own() -> None:
    with Trials(Obeys(), LIMIT) as trials:
        assert trials.outcome("die").signature == "the process ends: signal SIGSEGV"
        assert trials.outcome("shown") == SHOWN


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_in_order_is_taken_however_many_run(jobs: int) -> None:
    texts = ["no", None, "slow", "shown", "shown again"]
    seen: list[str] = []

    def accept(text: str, outcome: Outcome) -> bool:
        seen.append(text)
        return outcome.is_shown

    with Trials(Obeys(), LIMIT, jobs) as trials:
        assert trials.first(iter(texts), accept) == 2
        assert trials.first(iter(["no", "no 2"]), accept) is None
    assert seen == ["no", "slow", "no", "no 2"]


def test_a_text_is_tried_once() -> None:
    with Trials(Obeys(), LIMIT) as trials:
        for _ in range(3):
            trials.outcome("shown")
        assert trials.count == 1
        trials.outcome("shown", again=True)
        assert trials.count == 2


# -- asking ---------------------------------------------------------------------------------------


def test_a_flaky_predicate_is_refused(tmp_path: Path) -> None:
    predicate = Obeys(str(tmp_path))
    with (
        Trials(predicate, LIMIT) as trials,
        pytest.raises(HloError, match="flaky: of 3 trials 1 showed that it is so"),
    ):
        ask(trials, predicate, "flaky", "a.hlo")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("no", NotShown, "a.hlo does not show it: in 3 trials it was not so that it is so"),
        ("hang", NotShown, "no answer after 0.5 s"),
        ("unknown", HloError, "the predicate cannot tell: who knows"),
        ("shown", HloError, "there is nothing to reduce: a module with one constant shows it"),
    ],
)
def test_a_predicate_that_cannot_be_used(text: str, error: type[HloError], said: str) -> None:
    with Trials(Obeys(), TimeLimit(0.5)) as trials, pytest.raises(error, match=said):
        ask(trials, Obeys(), text, "a.hlo", trivial="shown by all")


def test_the_time_limit_follows_the_input_where_it_may() -> None:
    for adapts, seconds in ((True, 10.0), (False, 30.0)):
        with Trials(Obeys(), LIMIT, adapts=adapts) as trials:
            assert ask(trials, Obeys(), "shown", "a.hlo", trivial="no") == SHOWN
            assert trials.limit.seconds == seconds


# -- journal --------------------------------------------------------------------------------------


def test_a_journal_is_read_again_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "j")
    with Trials(Obeys(), LIMIT, journal=Journal(path, "a", resume=False)) as trials:
        trials.outcome("shown")
        trials.outcome("no")
    whole = Path(path).read_text()
    Path(path).write_text(whole + '["abc", "sho')
    with Trials(Obeys(), LIMIT, journal=Journal(path, "a", resume=True)) as trials:
        assert trials.outcome("shown") == SHOWN
        assert trials.count == 0
        assert trials.outcome("slow") == SHOWN
        assert trials.count == 1
    assert len(Journal(path, "a", resume=True).outcomes) == 3


@pytest.mark.parametrize(("subject", "said"), [("b", "another input"), (None, "there is none")])
def test_a_journal_of_something_else_is_refused(
    subject: str | None, said: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "j")
    if subject is not None:
        Journal(path, "a", resume=False)
    with pytest.raises(HloError, match=said):
        Journal(path, "b", resume=True)
