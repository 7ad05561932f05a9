"""The fuzzer: the same inputs each time, all kinds of findings, and none in some hundred inputs."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fuzz_lib import checks, commands, pipelines, protos
from fuzz_lib.inputs import KINDS, Inputs
from fuzz_lib.mutations import Texts, mutated
from fuzz_lib.pipelines import check_pipeline
from hloopt.commands import fmt
from hloopt.passes.simplification.cse import CommonSubexpressionElimination
from hloopt.proto import encode
from hloopt.text import parse_module, print_module
from sweep_lib import prints
from sweep_lib.findings import Progress, TooSlow
from sweep_lib.limits import Limits, clock, next_step
from sweep_lib.reduction import reduced
from sweep_lib.state import State
from sweep_lib.workers import run

TEXT = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(q, p)
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.hlo").write_text(TEXT)
    (tmp_path / "b.hlo").write_text(TEXT.replace("negate", "abs"))
    return tmp_path


def test_the_seed_and_the_number_decide_what_a_text_is(folder: Path) -> None:
    first = [mutated(Texts([folder]), 7, number) for number in range(50)]
    again = [mutated(Texts([folder]), 7, number) for number in reversed(range(50))]
    assert first == again[::-1]
    assert len({*first}) > 30
    assert first != [mutated(Texts([folder]), 8, number) for number in range(50)]


def test_a_good_text_is_valid_a_broken_one_refused() -> None:
    assert checks.check(TEXT, thorough=True) == ("valid", None)
    assert checks.check(TEXT.replace("add(q", "add(x"), thorough=True) == ("refused", None)
    invalid = TEXT.replace("ROOT r = f32[4]{0}", "ROOT r = f32[5]{0}")
    assert checks.check(invalid, thorough=True) == ("invalid", None)


def _hang(text: str) -> object:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pass
    raise AssertionError("nobody stopped this")


def _hoard(text: str) -> object:
    return bytearray(600 << 20)


def _crash(text: str) -> object:
    raise KeyError(text[:3])


@pytest.mark.parametrize(
    ("broken", "kind"),
    [(_crash, "KeyError"), (_hang, "TooSlow"), (_hoard, "MemoryError")],
)
def test_what_must_not_happen_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: object, kind: str
) -> None:
    monkeypatch.setattr(checks, "parse_module", broken)
    inputs = Inputs((folder,), seed=0, kinds=("text",), seconds=0.3, reduction_seconds=1)
    with clock():
        progress = inputs.examine(3, set())
    (finding,) = progress.findings
    assert finding.problem.kind.startswith(f"read: {kind}")
    assert finding.number == 3


def test_a_print_that_is_not_read_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prints, "print_module", lambda module, options: "HloModule m, x")
    _, problem = checks.check(TEXT, thorough=False)
    assert problem is not None
    assert problem.kind == "print (full): the print is refused"


def test_a_finding_is_made_smaller() -> None:
    small = reduced(TEXT, lambda text: "negate(" in text and "{" in text, seconds=5)
    assert len(small) < 12


def test_folders_without_texts_are_an_error(folder: Path) -> None:
    inputs = Inputs((folder / "nothing here",), seed=0)
    with pytest.raises(OSError, match="no HLO texts"):
        list(run(inputs, [range(1)], jobs=1))


def test_every_command_is_drawn_and_ends_with_an_answer(folder: Path) -> None:
    dice = random.Random(5)
    files = [str(folder / name) for name in ("a.hlo", "b.hlo")]
    lines = [commands.command_line(dice, files, str(folder)) for _ in range(2000)]
    names = {tuple(line[: len(words)]) for line in lines for words in commands.drawn_commands()}
    assert names >= commands.drawn_commands().keys()
    assert {flag for line in lines for flag in line} >= {"--format", "--by", "--passes", "-o"}
    ends = [commands.check_command(line) for line in lines[:60]]
    assert [problem for _, problem in ends if problem] == []
    assert {outcome for outcome, _ in ends} >= {"exit 0", "exit 2"}


@pytest.mark.parametrize("apart", [False, True])
def test_an_exit_code_of_a_defect_is_a_finding(
    folder: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(fmt.command, "callback", crash)
    monkeypatch.setattr(commands, "_apart", lambda arguments: 70)
    outcome, problem = commands.check_command(["fmt", str(folder / "a.hlo")], apart=apart)
    assert outcome == "broken"
    assert problem is not None
    assert (
        problem.kind == "fmt: exit code 70" if apart else problem.kind.startswith("fmt: KeyError")
    )


def test_what_a_command_writes_has_to_be_read_again(folder: Path) -> None:
    target = folder / "out.hlo"
    line = ["opt", str(folder / "a.hlo"), "--passes", "dce", "-o", str(target)]
    assert commands.check_command(line) == ("exit 0", None)
    unread = ["fmt", str(folder / "a.hlo"), "-o", str(target), "--print", "fingerprint"]
    assert commands.check_command(unread) == ("exit 0", None)
    target.write_text("HloModule m, x")
    with pytest.raises(prints.Broken, match="what it wrote is refused"):
        commands._check_written(line)


def test_protos_are_broken_in_their_fields(folder: Path) -> None:
    data = encode(parse_module(TEXT))
    broken = [protos.broken_proto(random.Random(seed), TEXT) for seed in range(200)]
    assert len({*broken, data}) > 100
    assert protos.check_proto(data) == ("valid", None)
    ends = [protos.check_proto(proto) for proto in broken]
    assert [problem for _, problem in ends if problem] == []
    assert {outcome for outcome, _ in ends} == {"valid", "invalid", "refused"}
    assert protos.broken_proto(random.Random(0), "HloModule") == b""


def test_a_proto_that_comes_back_as_another_module_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = encode(parse_module(TEXT.replace("negate", "abs")))
    monkeypatch.setattr(protos, "encode", lambda module: other)
    _, problem = protos.check_proto(encode(parse_module(TEXT)))
    assert problem is not None
    assert problem.kind == "proto, encode: the proto is another module"


def test_pipelines_are_broken_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [pipelines.broken_pipeline(random.Random(seed)) for seed in range(200)]
    assert len(set(texts)) > 100
    ends = [check_pipeline(text, TEXT) for text in texts]
    assert [problem for _, problem in ends if problem] == []
    assert {outcome for outcome, _ in ends} == {"valid", "refused"}

    def crash(*_: object) -> bool:
        raise KeyError("planted")

    monkeypatch.setattr(CommonSubexpressionElimination, "run", crash)
    _, problem = check_pipeline("name: p\npasses:\n  - cse\n", TEXT)
    assert problem is not None
    assert problem.kind.startswith("run the pipeline: KeyError")


def test_a_state_knows_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.jsonl"
    state = State(path, "seed 1")
    assert list(state.missing(25, 10)) == [range(10), range(10, 20), range(20, 25)]
    state.add(range(10, 20), Progress(10))
    state.add(range(20, 25), Progress(5))
    again = State(path, "seed 1")
    assert again.total.done == 15
    assert list(again.missing(40, 10)) == [range(10), range(25, 30), range(30, 40)]
    path.write_text(path.read_text()[:-5])  # killed while it wrote
    assert State(path, "seed 1").total.done == 10
    assert State(path, "seed 2").total.done == 0
    monkeypatch.setattr("sweep_lib.state.sources_digest", lambda: "other")
    assert State(path, "seed 2").total.done == 0


def _of_each_kind(folder: Path) -> list[tuple[str, Callable[[], Progress]]]:
    return [
        (kind, partial(Inputs((folder,), 1, kinds=(kind,)).examine, 4, set())) for kind in KINDS
    ]


def test_each_kind_of_input_is_examined(folder: Path) -> None:
    with clock():
        for kind, examine in _of_each_kind(folder):
            progress = examine()
            assert progress.done == 1
            assert [o for o in progress.outcomes if o.startswith(kind)] != []
            assert progress.findings == []


def _busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_each_of_many_steps_has_all_of_the_time() -> None:
    with clock(), Limits(0.5, 500):
        for _ in range(4):
            next_step()
            _busy(0.2)
    with clock(), pytest.raises(TooSlow), Limits(0.5, 500):
        _busy(8)
    next_step()  # no limits are in force
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


ASYNC_CALL = """HloModule m

g {
  ROOT a = f32[] parameter(0)
}

w {
  b = f32[] parameter(0)
  ROOT c = f32[] call(b), to_apply=g, frontend_attributes={s="1"}
}

ENTRY e {
  p = f32[] parameter(0)
  t = ((f32[]), f32[]) async-start(p), calls=w, frontend_attributes={s="1"}
  ROOT d = f32[] async-done(t), frontend_attributes={s="1"}
}
"""


def test_what_readers_give_to_wrapped_operations_is_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = parse_module(ASYNC_CALL)
    for instruction in list(module.entry.instructions)[1:]:
        instruction.set_attribute("frontend_attributes", '{g="1",s="1"}')
    again = prints.check_print(module, prints.FULL)
    assert again is not None
    assert 'frontend_attributes={g="1",s="1"}' in print_module(again)
    monkeypatch.setattr(prints, "parse_module", lambda text: parse_module(ASYNC_CALL))
    with pytest.raises(prints.Broken, match="the second print differs"):
        prints.check_print(parse_module(ASYNC_CALL.replace('"1"', '"2"')), prints.FULL)


@pytest.mark.slow
def test_a_few_hundred_broken_inputs_do_no_harm(root: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "tools/fuzz.py", "--count", "1000", "--seed", "1", "--save", tmp_path],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1,000 inputs (texts: " in result.stdout, result.stdout
    assert "0 findings of 0 kinds" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["seed-1.jsonl"]
