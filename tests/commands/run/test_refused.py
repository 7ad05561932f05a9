"""`hloopt run`: modules that cannot be run, wrong usage, limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.run.modules import LOOP, STEP, Capture, Write, entry, refused

from hloopt.amounts import parse_size
from hloopt.cli import main
from hloopt.commands.run import command
from hloopt.equivalence.settings import MOST_MEMORY, MOST_STEPS

UNKNOWN = entry(
    "p = f32[2]{0} parameter(0)",
    'ROOT c = f32[2]{0} custom-call(p), custom_call_target="who"',
)
LEFT_OUT = entry("ROOT c = f32[2]{0} constant({...})")

MANY = """HloModule many

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[] parameter(0)
  ROOT r = f32[] all-reduce(p), channel_id=1, to_apply=sum, use_global_device_ids=true,
    replica_groups=[1,4611686018427387904]<=[4611686018427387904]
}
"""


# -- what cannot be run -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (UNKNOWN, "HLO501", 'custom call target "who"'),
        (LEFT_OUT, "HLO502", "values were left out"),
    ],
)
def test_stand_ins_are_only_made_up_on_demand(
    write: Write, capsys: Capture, text: str, code: str, message: str
) -> None:
    error = refused(capsys, write(text))
    assert f"error[{code}]" in error
    assert message in error
    assert "--stand-ins" in error
    assert main(["run", write(text), "--stand-ins"]) == 0


@pytest.mark.parametrize(
    ("text", "options", "code", "message"),
    [
        (LOOP, ["--max-steps", "1K"], "HLO503", "stopped after 1,000 steps"),
        (STEP, ["--max-memory", "10B"], "HLO503", "the limit is 10"),
        (entry("ROOT p = f32[4000000000,4000000000]{1,0} parameter(0)"), [], "HLO503", "inputs"),
        (
            entry("z = f32[] constant(0)", "ROOT b = f32[99999,99999] broadcast(z), dimensions={}"),
            [],
            "HLO503",
            "values would take",
        ),
        (
            entry(
                "s = u64[2]{0} parameter(0)",
                "ROOT i = (u64[2]{0}, f32[2]{0}) rng-bit-generator(s), algorithm=rng_default",
            ),
            ["--stand-ins"],
            "HLO501",
            "random bits are integers",
        ),
        (STEP, ["--devices", "99999x99999"], "HLO500", "9,999,800,001 devices"),
        (MANY, [], "HLO500", "4,611,686,018,427,387,904 devices"),
        (MANY, ["--devices", "1x4"], "HLO500", "%r: it names 4,611,686,018,427,387,904 devices"),
        ("", [], "HLO114", "the text is empty"),
        (STEP[:150], [], "HLO1", "step.hlo:"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_message(
    write: Write, capsys: Capture, text: str, options: list[str], code: str, message: str
) -> None:
    error = refused(capsys, write(text), *options)
    assert error.startswith(f"error[{code}")
    assert message in error


def test_devices_that_wait_for_ever_are_named(write: Write, capsys: Capture) -> None:
    text = """HloModule m, replica_count=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
one { x = f32[] parameter(0) ROOT r = f32[] all-reduce(x), to_apply=sum }
two { ROOT x = f32[] parameter(0) }
ENTRY e { p = f32[] parameter(0) i = u32[] replica-id()
  ROOT c = f32[] conditional(i, p, p), branch_computations={one, two} }
"""
    text = text.replace("i = u32[] replica-id()", "u = u32[] replica-id() i = s32[] convert(u)")
    error = refused(capsys, write(text))
    assert "error[HLO504]" in error
    assert "device 0 waits at %r for device 1" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--devices", "8"], "'8' is no RxP"),
        (["--devices", "0x4"], "'0x4' has no device"),
        (["--max-steps", "0"], "'0' is no amount: for example 100M"),
        (["--max-memory", "much"], "'much' is no amount: for example 8GiB"),
        (["--fill", "ones"], "'ones' is not one of 'random'"),
        (["--engine", "xla", "--trace"], "XLA shows results only"),
        (["-o", "-"], "-o needs a file"),
        (["another.hlo"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(write: Write, capsys: Capture, options: list[str], message: str) -> None:
    assert message in refused(capsys, write(STEP), *options)


def test_outputs_that_cannot_be_written(write: Write, tmp_path: Path, capsys: Capture) -> None:
    path = write(STEP)
    error = refused(capsys, path, "-o", str(tmp_path / "step.hlo" / "out.npz"))
    assert "step.hlo is a file, not a folder" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step.hlo"]


def test_shrinking_what_is_small_says_so(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--shrink"]) == 0
    assert capsys.readouterr().err.startswith("shrunk: nothing in ")


def test_the_limits_are_those_of_the_library() -> None:
    defaults = {option.name: str(option.default) for option in command.params}
    assert parse_size(defaults["max_steps"]) == MOST_STEPS
    assert parse_size(defaults["max_memory"]) == MOST_MEMORY
