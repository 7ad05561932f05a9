"""Reports on modules that are not at the stage their models are for: figures, but no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hloopt.cli import main

_WHOLE = """HloModule whole, num_partitions=4
ENTRY e {
  p = f32[1024]{0} parameter(0), sharding={devices=[4]<=[4]}
  a = f32[1024]{0} negate(p), sharding={devices=[4]<=[4]}
  ROOT b = f32[1024]{0} abs(a), sharding={devices=[4]<=[4]}
}
"""
_PART = """HloModule part, num_partitions=4, is_scheduled=true
ENTRY e {
  p = f32[256]{0} parameter(0), sharding={devices=[4]<=[4]}
  a = f32[256]{0} negate(p)
  ROOT b = f32[256]{0} abs(a)
}
"""
_ONE = "HloModule one\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
_SPACES = _ONE.replace("ROOT q", "q").replace(
    "(p)\n", "(p)\n  c = f32[4]{0:S(7)} copy(q)\n  ROOT d = f32[4]{0} negate(c)\n"
)
_TILED = _ONE.replace("{0}", "{0:T(1024)}")
_NOT_PARTITIONED = "not partitioned: figures are of the whole program over 4 devices"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "m.hlo") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def _joined(text: str) -> str:
    """The text as one line: notices are wrapped."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    "command",
    [
        ["memory"],
        ["cost", "--target", "h100_sxm"],
        ["cost", "--latency", "--target", "h100_sxm"],
        ["schedule", "--target", "h100_sxm"],
        ["analyze", "loops"],
        ["analyze", "overlap", "--target", "h100_sxm"],
        ["analyze", "replication"],
    ],
    ids=" ".join,
)
def test_every_report_says_that_a_module_is_not_partitioned(
    command: list[str], write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, is_said in ((_WHOLE, True), (_PART, False), (_ONE, False)):
        assert main([*command, write(text)]) == 0
        assert (_NOT_PARTITIONED in _joined(capsys.readouterr().out)) is is_said
        assert main([*command, write(text), "--format", "json"]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert any("not partitioned" in notice for notice in report["notices"]) is is_said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(_WHOLE, "the module is not partitioned over its 4 devices", id="whole"),
        pytest.param(_SPACES, "its memory spaces are not modelled", id="spaces"),
    ],
)
def test_there_is_no_verdict_against_a_limit(
    text: str, reason: str, write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", write(text), "--limit", "1GiB"]) == 2
    out = capsys.readouterr().out
    assert f"no verdict against 1.0 GiB (--limit): {reason}" in _joined(out)
    assert "fits" not in out
    assert "RESOURCE_EXHAUSTED" not in out
    assert main(["memory", write(text), "--limit", "1GiB", "--format", "json"]) == 2
    (report,) = json.loads(capsys.readouterr().out)
    assert report["fit"] is None
    assert reason in report["no_verdict"]


_TWO_ORDERS = _ONE.replace("ROOT q", "q").replace(
    "(p)\n", "(p)\n  r = f32[4]{0} cosine(p)\n  ROOT s = f32[4]{0} add(q, r)\n"
)


def test_there_is_no_verdict_before_there_is_an_order(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", write(_TWO_ORDERS), "--limit", "1GiB"]) == 2
    out = _joined(capsys.readouterr().out)
    assert "no verdict against 1.0 GiB (--limit): the module is not scheduled" in out
    assert "fits" not in out
    scheduled = _TWO_ORDERS.replace("HloModule one", "HloModule one, is_scheduled=true")
    assert main(["memory", write(scheduled), "--limit", "1GiB"]) == 0
    assert "fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["cost", "--target", "h100_sxm"],
        ["cost", "--latency", "--target", "h100_sxm"],
        ["schedule", "--target", "h100_sxm"],
        ["analyze", "overlap", "--target", "h100_sxm"],
    ],
    ids=" ".join,
)
def test_times_and_bytes_before_fusion_are_called_so(
    command: list[str], write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, is_said in ((_TWO_ORDERS, True), (_ONE, False)):
        assert main([*command, write(text)]) == 0
        out = _joined(capsys.readouterr().out)
        assert ("not fused (%q could be fused into %s)" in out) is is_said


def test_tiles_are_padded_for_tpu_and_give_no_verdict_for_others(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(_TILED)
    assert main(["memory", path, "--limit", "1GiB", "--backend", "cpu"]) == 2
    out = _joined(capsys.readouterr().out)
    assert "layouts have tiles (%p), which are not padded: sizes are too small" in out
    assert "the tiles of its layouts are not padded" in out
    assert main(["memory", path, "--limit", "1GiB"]) == 0
    out = _joined(capsys.readouterr().out)
    assert "arguments 4.0 KiB" in out
    assert "not padded" not in out


def test_one_device_gets_a_verdict(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (_ONE, _PART):
        assert main(["memory", write(text), "--limit", "1GiB"]) == 0
        assert "fits" in capsys.readouterr().out


def test_the_memory_of_a_gpu_has_a_space_for_collectives(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _SPACES.replace("S(7)", "S(1)")
    assert main(["memory", write(text), "--limit", "1GiB", "--backend", "gpu"]) == 0
    assert "fits" in capsys.readouterr().out


def test_where_only_arguments_are_sharded_nobody_knows(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _PART.replace(", is_scheduled=true", "")
    assert main(["memory", write(text), "--limit", "1GiB"]) == 2
    out = _joined(capsys.readouterr().out)
    assert "not known whether it is partitioned" in out
    assert "fits" not in out


def test_a_whole_program_is_not_compared_with_one_device(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [write(_WHOLE, "a.hlo"), write(_PART, "b.hlo")]
    assert main(["diff", *pair]) == 1
    out = _joined(capsys.readouterr().out)
    assert "memory is not compared: the first is not partitioned, the second is" in out
    assert "temporaries" not in out
    assert main(["diff", *reversed(pair)]) == 1
    out = _joined(capsys.readouterr().out)
    assert "memory is not compared: the second is not partitioned, the first is" in out
    assert main(["analyze", "overlap", *pair, "--target", "h100_sxm"]) == 2
    assert "cannot be compared" in capsys.readouterr().err


def test_whole_programs_are_compared_without_percentages(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [write(_WHOLE, "a.hlo"), write(_WHOLE.replace("1024", "2048"), "b.hlo")]
    assert main(["diff", *pair, "--memory", "--color", "always"]) == 1
    out = capsys.readouterr().out
    table = out[out.index("memory") :]
    assert "+4.0 KiB" in table
    assert "%)" not in table
    assert "\x1b[31m+" not in table
    assert "sizes only, no verdict" in table


def test_what_partitions_have_in_common_is_not_told_before_the_partitioner(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "replication", write(_WHOLE)]) == 0
    out = capsys.readouterr().out
    assert "same on all" not in out
    assert "nothing to compare" not in out
    assert main(["analyze", "replication", write(_PART)]) == 0
    assert "same on all" in capsys.readouterr().out


def test_memory_is_compared_by_the_rules_of_one_backend(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Temporaries begin at multiples of 64 bytes on a CPU, of 256 on a GPU."""
    before = """HloModule one, is_scheduled=true
ENTRY e {
  p = f32[9]{0} parameter(0)
  a = f32[9]{0} reverse(p), dimensions={0}
  b = f32[9]{0} reverse(a), dimensions={0}
  c = f32[18]{0} concatenate(a, b), dimensions={0}
  ROOT d = f32[18]{0} reverse(c), dimensions={0}
}
"""
    after = before.replace("true", 'true, frontend_attributes={fingerprint_before_lhs="1"}')
    pair = [write(before, "a.hlo"), write(after, "b.hlo")]
    assert main(["diff", *pair, "--memory", "--format", "json"]) == 1
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["before"] == memory["after"]


_LOOP = """HloModule loop
body {
  t = (s32[], f32[1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[1024] get-tuple-element(t), index=1
  b = f32[1024] get-tuple-element(t), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT swapped = (s32[], f32[1024], f32[1024]) tuple(next, b, a)
}
condition {
  t = (s32[], f32[1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  p = f32[1024] parameter(0)
  q = f32[1024] parameter(1)
  init = (s32[], f32[1024], f32[1024]) tuple(zero, p, q)
  ROOT w = (s32[], f32[1024], f32[1024]) while(init), condition=condition, body=body
}
"""


def _memory(path: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["memory", path, "--limit", "1GiB", "--format", "json"])
    (report,) = json.loads(capsys.readouterr().out)
    assert isinstance(report, dict)
    return report


def test_memory_before_copy_insertion_is_that_with_copies_and_no_verdict(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _memory(write(_LOOP), capsys)
    assert before["fit"] is None
    assert "copies are not inserted yet" in before["no_verdict"]
    assert "7 copies inserted" in before["notices"][0]
    out = str(tmp_path / "copied.hlo")
    passes = "flatten-call-graph,copy-insertion,hlo-memory-scheduler"
    assert main(["opt", write(_LOOP), "--passes", passes, "-o", out, "--no-report"]) == 0
    after = _memory(out, capsys)
    assert after["fit"]["fits"]
    assert after["notices"] == []
    assert after["statistics"] == before["statistics"]


def test_a_program_that_is_not_flat_is_measured_flattened(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    double = "f { x = f32[4] parameter(0)  ROOT d = f32[4] add(x, x) }\nENTRY"
    call = "ROOT q = f32[4]{0} call(p), to_apply=f"
    once = _ONE.replace("ENTRY", double).replace("ROOT q = f32[4]{0} negate(p)", call)
    twice = once.replace("ROOT q", "r").replace(
        "to_apply=f\n", "to_apply=f\n  ROOT q = f32[4]{0} call(r), to_apply=f\n"
    )
    assert _memory(write(once), capsys)["fit"]["fits"]
    report = _memory(write(twice), capsys)
    assert report["fit"] is None
    assert "not flattened" in report["no_verdict"]
    assert "flattened" in report["notices"][0]


def test_a_scheduled_module_without_its_copies_gets_no_verdict(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _memory(write(_LOOP.replace("loop\n", "loop, is_scheduled=true\n", 1)), capsys)
    assert report["fit"] is None
    assert "copies are missing" in report["no_verdict"]


def test_a_pass_that_drops_copies_is_no_gain(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "copied.hlo")
    passes = "flatten-call-graph,copy-insertion"
    assert main(["opt", write(_LOOP), "--passes", passes, "-o", out, "--no-report"]) == 0
    assert main(["diff", out, write(_LOOP), "--memory", "--format", "json"]) == 1
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["before"] == memory["after"]
    assert memory["doubts"]


@pytest.mark.parametrize("command", [["schedule"], ["analyze", "overlap"]], ids=" ".join)
def test_schedules_are_of_the_module_with_its_copies(
    command: list[str], write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(_LOOP)
    before = Path(path).read_text()
    assert main([*command, path, "--target", "h100_sxm"]) == 0
    if command == ["schedule"]:
        assert "7 copies inserted" in _joined(capsys.readouterr().out)
    assert Path(path).read_text() == before


def test_rules_of_another_backend_are_named(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    header = 'HloModule one, frontend_attributes={fingerprint_before_lhs="1"}'
    gpu = _ONE.replace("HloModule one", header)
    pair = [write(_ONE, "cpu.hlo"), write(gpu.replace("negate", "abs"), "gpu.hlo")]
    assert main(["diff", *pair, "--memory"]) == 1
    note = "no verdict: nothing in the first tells of XLA:GPU, whose rules both are by"
    assert note in _joined(capsys.readouterr().out)
    assert main(["diff", pair[0], write(_ONE.replace("negate", "abs")), "--memory"]) == 1
    assert "no verdict" not in _joined(capsys.readouterr().out)
    asked = "nothing in the module tells that XLA:GPU compiled it"
    for backend, is_said in (("gpu", True), ("cpu", False), ("auto", False)):
        assert main(["memory", pair[0], "--backend", backend]) == 0
        assert (asked in _joined(capsys.readouterr().out)) is is_said
