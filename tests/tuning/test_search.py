"""The search for flags, on made-up steps; its space, its journal, its front."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from hloopt.compilers.compiling import Compiler
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from hloopt.tuning.journal import Journal
from hloopt.tuning.judgement import Choice, Judge, Judged
from hloopt.tuning.search import Search, front_of
from hloopt.tuning.space import preset_names, read_space

FIVE = {f"xla_{name}": ["true"] for name in "abcde"}
Steps = Callable[[frozenset[str]], float]


def search_of(seconds: Steps, space: dict[str, list[str]] | None = None) -> Search:
    def judge(choices: Sequence[Choice]) -> Iterator[Judged]:
        for choice in choices:
            names = frozenset(name.removeprefix("xla_") + value[4:] for name, value in choice)
            if "u" in names:
                yield Judged(choice, error="unknown", is_unknown_flag=True)
            elif "r" in names:
                yield Judged(choice, error="refused")
            else:
                yield Judged(choice, seconds(names), 0.0, 100 + len(names), 0.0)

    return Search(space or FIVE, judge)


def helping(**gains: float) -> Steps:
    return lambda names: 1.0 - sum(gain for name, gain in gains.items() if name in names)


def only_together(names: frozenset[str]) -> float:
    """Two flags that help together, and cost alone."""
    return 0.7 if {"a", "b"} <= names else 1.0 + 0.05 * len(names & {"a", "b"})


def in_the_way(names: frozenset[str]) -> float:
    """Two flags that help alone, and not together."""
    return 1.0 if {"a", "b"} <= names else 1.0 - 0.1 * len(names & {"a", "b"})


@pytest.mark.parametrize(
    "seconds",
    [
        helping(a=0.1),
        helping(a=0.1, c=0.2, e=0.05),
        helping(a=-0.1, b=-0.2, c=-0.1, d=-0.1, e=-0.1),
        helping(a=0.1, b=-0.2, d=0.3),
        only_together,
        in_the_way,
        lambda names: only_together(names) - (0.1 if "d" in names else 0.0),
    ],
)
def test_the_best_of_all_is_found_with_half_of_the_compiles(seconds: Steps) -> None:
    search = search_of(seconds)
    best = search.run()
    everything = [
        frozenset(name for name, is_on in zip("abcde", on, strict=True) if is_on)
        for on in product((False, True), repeat=5)
    ]
    assert best.seconds == pytest.approx(min(map(seconds, everything)))
    assert len(search.judged) <= 16


def test_of_several_values_the_best_is_taken() -> None:
    space = {"xla_a": ["true1", "true2", "true3"], "xla_b": ["true"]}
    times = {"a1": 0.9, "a2": 0.7, "a3": 0.8}

    def seconds(names: frozenset[str]) -> float:
        return min((times.get(name, 1.0) for name in names), default=1.0)

    assert search_of(seconds, space).run().flags == (("xla_a", "true2"),)


def test_flags_that_are_unknown_or_refused_are_left_out() -> None:
    space = {"xla_u": ["true"], "xla_r": ["true"], "xla_a": ["true"]}
    search = search_of(helping(a=0.5, r=0.9), space)
    assert search.run().flags == (("xla_a", "true"),)
    assert search.unknown == ["xla_u"]


def test_a_step_that_is_hardly_shorter_is_none() -> None:
    assert search_of(helping(a=1e-6)).run().flags == ()


def test_the_front_has_what_nothing_beats() -> None:
    def judged(seconds: float | None, peak: int | None, count: int = 1) -> Judged:
        return Judged(tuple((str(n), "") for n in range(count)), seconds, 0.0, peak)

    steps = [judged(3, 10), judged(1, 30), judged(2, 40), judged(2, 20), judged(3, 20)]
    doubled = [judged(1, 30, 2), judged(None, None)]
    assert front_of([*steps, *doubled]) == [steps[1], steps[3], steps[0]]


# -- space ----------------------------------------------------------------------------------------


def test_presets_of_the_package_are_spaces() -> None:
    assert preset_names() == ["overlap"]
    assert read_space("overlap")["xla_gpu_enable_pipelined_all_gather"] == ["true"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected flags with their values"),
        ("[a]", "expected flags with their values"),
        ("xla_a: true", "xla_a needs a list of values"),
        ("xla_a: []", "xla_a needs a list of values"),
        ("a: [1]", "'a=1' is no flag of XLA"),
        ("xla_dump_to: [x]", "xla_dump_to is not free here"),
        ("xla_a: [", "is no YAML"),
    ],
)
def test_a_file_that_is_no_space(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HloError, match=message.replace("[", r"\[")):
        read_space(str(path))


def test_a_preset_that_is_not_there() -> None:
    with pytest.raises(HloError) as caught:
        read_space("overlaps")
    assert caught.value.help == "did you mean 'overlap'?"


# -- journal --------------------------------------------------------------------------------------


def judge_of(text: str = "negate") -> Judge:
    module = parse_module(
        f"HloModule m\nENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] {text}(p) }}"
    )
    return Judge(Program.of(module), Compiler("t", "x.so", "d"), "t", (), None)


def test_a_journal_has_what_was_judged_of_the_same_program(tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    first = Journal(path, judge_of(), "1")
    results = [Judged((("xla_a", "1"),), 1.0, 0.5, 7, 0.1), Judged((), error="refused")]
    for judged in results:
        first.add(judged)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"key": ')  # cut short
    assert list(Journal(path, judge_of(), "1").known.values()) == results
    assert Journal(path, judge_of("abs"), "1").known == {}
    assert Journal(path, judge_of(), "2").known == {}


def test_a_journal_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="cannot read"):
        Journal(str(tmp_path), judge_of(), "1")
    with pytest.raises(HloError, match="cannot write"):
        Journal(str(tmp_path / "no" / "j"), judge_of(), "1").add(Judged(()))
