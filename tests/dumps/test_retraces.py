"""Programs that were compiled again, and why."""

from __future__ import annotations

from pathlib import Path

from tests.dumps.dump_maker import STEP, write_dump

from hloopt.dumps.folder import scan
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.retraces import Trace
from hloopt.dumps.summary import summarize
from hloopt.dumps.terminal import trace_text


def traces(folder: Path) -> list[Trace]:
    return summarize([str(folder)], scan([str(folder)]), Gatherer(1, None)).retraces


def write(folder: Path, id: int, begin: str) -> None:
    write_dump(folder, id=id, begin=begin, passes=(), end=None)


def test_one_trace_is_none(tmp_path: Path) -> None:
    write(tmp_path, 1, STEP)
    write_dump(tmp_path, id=2, name="jit_eval", end=None)
    assert traces(tmp_path) == []


def test_another_shape(tmp_path: Path) -> None:
    write(tmp_path, 1, STEP)
    write(tmp_path, 2, STEP.replace("8,8", "16,16"))
    (trace,) = traces(tmp_path)
    assert [change.part for change in trace.changes] == ["parameter 0", "parameter 1", "result 0"]
    assert trace_text(trace).startswith("parameter 0: f32[8,8]{1,0} → f32[16,16]{1,0}; ")


def test_a_trace_is_beside_the_one_it_is_most_like(tmp_path: Path) -> None:
    sharded = STEP.replace("parameter(1)", "parameter(1), sharding={replicated}")
    write(tmp_path, 1, STEP)
    write(tmp_path, 2, STEP.replace("8,8", "16,16"))
    write(tmp_path, 3, sharded)
    write(tmp_path, 4, STEP.replace("8,8", "16,16").replace("add(%all", "subtract(%all"))
    write(tmp_path, 5, STEP)
    found = traces(tmp_path)
    assert [(t.compilation.id, t.before.id) for t in found] == [(2, 1), (3, 1), (4, 2), (5, 1)]
    assert trace_text(found[1]) == "parameter 1: f32[8,8]{1,0} → f32[8,8]{1,0} {replicated}"
    assert trace_text(found[2]) == "its body: the signature is the same"
    assert trace_text(found[3]) == "nothing: the same module again"


def test_another_number_of_arguments_and_devices(tmp_path: Path) -> None:
    more = (
        STEP.replace("  %dot.1", "  %r = f32[] parameter(2)\n  %dot.1")
        .replace("q: f32[8,8])", "q: f32[8,8], r: f32[])")
        .replace("_partitions=4", "_partitions=8")
        .replace("3}}", "3},{4,5,6,7}}")
    )
    write(tmp_path, 1, STEP)
    write(tmp_path, 2, more)
    (trace,) = traces(tmp_path)
    assert trace_text(trace) == "devices: 1x4 → 1x8; parameter 2: none → f32[]"


def test_hosts_and_runs_trace_for_themselves(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        for host in range(2):
            write(tmp_path / run / f"process-{host}", 1, STEP)
    assert traces(tmp_path) == []


def test_a_signature_that_is_not_known_is_no_other_one(tmp_path: Path) -> None:
    write(tmp_path, 1, STEP)
    broken = "parameter(1), sharding={devices=[8,1]<=[8]}, "  # of four devices
    write(tmp_path, 2, STEP.replace("parameter(1), ", broken))
    write_dump(tmp_path, id=3, begin=STEP)
    (tmp_path / "module_0003.jit_step.before_optimizations.txt").unlink()
    (trace,) = traces(tmp_path)
    assert trace.compilation.id == 2
    assert trace_text(trace).startswith("not known: the module breaks a rule of HLO: ")
