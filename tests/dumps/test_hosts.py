"""Hosts that compiled different programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dumps.dump_maker import (
    END,
    OTHER_GROUPS,
    PASSES,
    STEP,
    WITHOUT_COPY,
    changed_from,
    write_dump,
)

from hloopt.dumps.folder import scan
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.hosts import HostFindings
from hloopt.dumps.summary import summarize

GROUPS = "{{0,1,2,3}}"
ALONE = "HloModule jit_log, is_scheduled=true\n\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n"
"""A program without collectives."""


def compare(folder: Path, group: str | None = None) -> HostFindings:
    found = scan([str(folder)], group=group)
    return summarize([str(folder)], found, Gatherer(1, None)).hosts


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """Four hosts with one module."""
    for host in range(4):
        write_dump(tmp_path / f"process-{host}")
    return tmp_path


def test_hosts_that_agree(hosts: Path) -> None:
    assert compare(hosts) == HostFindings(1, [], [], [])


@pytest.mark.parametrize(
    ("number", "maker"),
    [
        (0, "simplification: before its first pass"),
        (1, "simplification: algsimp"),
        (2, "collectives: all-reduce-combiner"),
        (3, "cpu_after_optimizations"),
    ],
)
def test_the_first_pass_behind_which_a_host_differs(number: int, maker: str, hosts: Path) -> None:
    passes, end = changed_from(number, GROUPS, OTHER_GROUPS)
    write_dump(hosts / "process-2", passes=passes, end=end)
    found = compare(hosts)
    (divergence,) = found.divergences
    assert divergence.maker == maker
    assert not divergence.is_input
    assert divergence.hosts == [["process-0", "process-1", "process-3"], ["process-2"]]
    assert divergence.first is not None
    assert divergence.first.where.startswith("%all-reduce.")
    assert divergence.first.what == ("replica_groups",)
    assert GROUPS in divergence.first.before
    assert OTHER_GROUPS in divergence.first.after
    (mismatch,) = found.mismatches
    assert (mismatch.program, mismatch.position) == ("jit_step", 1)
    assert [hosts for _, hosts in mismatch.entries] == divergence.hosts


def test_a_host_that_was_given_another_program(hosts: Path) -> None:
    passes, end = changed_from(0, "add(%all", "multiply(%all")
    begin = STEP.replace("add(%all", "multiply(%all")
    write_dump(hosts / "process-1", begin=begin, passes=passes, end=end)
    found = compare(hosts)
    (divergence,) = found.divergences
    assert divergence.is_input
    assert divergence.first is not None
    assert "%add.1" in divergence.first.where
    assert found.mismatches == []  # the collectives are in order


def test_a_pass_that_changed_something_on_one_host_only(hosts: Path) -> None:
    end = END.replace("add(%all", "multiply(%all")
    more = "0003.late.after_reassociate.before_dce", END.replace("add(%all", "multiply(%all")
    write_dump(hosts / "process-3", passes=(*PASSES, more), end=end)
    (divergence,) = compare(hosts).divergences
    assert divergence.maker == "late: reassociate"
    assert divergence.hosts[1] == ["process-3"]
    assert divergence.files[0] == ""
    assert divergence.first is None


def test_a_host_without_the_dumps_of_passes_is_compared_at_both_ends(hosts: Path) -> None:
    for path in (hosts / "process-1").glob("*.000?.*"):
        path.unlink()
    assert compare(hosts).divergences == []
    passes, end = changed_from(1, GROUPS, OTHER_GROUPS)
    write_dump(hosts / "process-0", passes=passes, end=end)
    (divergence,) = compare(hosts).divergences
    assert divergence.maker == "simplification: algsimp"
    assert divergence.hosts == [["process-1", "process-2", "process-3"], ["process-0"]]


def test_names_and_metadata_are_no_difference(hosts: Path) -> None:
    passes, end = changed_from(0, "%dot.1", "%dot.9")
    write_dump(hosts / "process-1", passes=passes, end=end.replace("psum", "psum2"))
    assert compare(hosts) == HostFindings(1, [], [], [])


def test_hosts_of_another_group_may_differ(hosts: Path, tmp_path: Path) -> None:
    passes, end = changed_from(0, "add(%all", "multiply(%all")
    begin = STEP.replace("add(%all", "multiply(%all")
    for host in range(4):
        (hosts / f"process-{host}").rename(hosts / f"stage0-rank{host}")
        write_dump(hosts / f"stage1-rank{host}", begin=begin, passes=passes, end=end)
    assert len(compare(hosts).divergences) == 1
    assert compare(hosts, r"stage(\d)") == HostFindings(2, [], [], [])


def test_runs_are_not_compared_with_each_other(tmp_path: Path) -> None:
    _, end = changed_from(0, GROUPS, OTHER_GROUPS)
    write_dump(tmp_path / "run1" / "process-0")
    write_dump(tmp_path / "run2" / "process-0", end=end)
    assert compare(tmp_path) == HostFindings(0, [], [], [])


def test_a_compilation_that_never_finished(hosts: Path) -> None:
    write_dump(hosts / "process-3", id=9, name="jit_eval", end=None)
    for host in range(3):
        write_dump(hosts / f"process-{host}", id=9, name="jit_eval")
    found = compare(hosts)
    assert found.divergences == []
    assert found.mismatches == []
    (leftover,) = found.leftovers
    assert leftover.compilation.host == "process-3"
    assert leftover.last == PASSES[-1][0].partition(".")[2]
    assert leftover.others == ["process-0", "process-1", "process-2"]


def test_an_unfinished_host_that_differs_before(hosts: Path) -> None:
    passes, _ = changed_from(1, GROUPS, OTHER_GROUPS)
    (hosts / "process-3" / "module_0003.jit_step.cpu_after_optimizations.txt").unlink()
    write_dump(hosts / "process-3", passes=passes[:2], end=None)
    found = compare(hosts)
    (divergence,) = found.divergences
    assert divergence.maker == "simplification: algsimp"
    assert len(found.leftovers) == 1


def test_the_order_of_programs_with_collectives(hosts: Path) -> None:
    for host in range(4):
        later = host == 1
        write_dump(hosts / f"process-{host}", id=1 if later else 7, name="jit_eval")
        if host:  # a program without collectives may be compiled by some hosts only
            write_dump(
                hosts / f"process-{host}", id=2, name="jit_log", begin=ALONE, passes=(), end=ALONE
            )
    (mismatch,) = compare(hosts).mismatches
    assert (mismatch.program, mismatch.position) == ("", 1)
    assert mismatch.entries == [
        ("jit_step", ["process-0", "process-2", "process-3"]),
        ("jit_eval", ["process-1"]),
    ]


def test_other_orders_of_collectives(tmp_path: Path) -> None:
    second = (
        "  %dot.2 = f32[8,8]{1,0} all-reduce(%q), channel_id=2, replica_groups={{0,1,2,3}}, "
        "use_global_device_ids=true, to_apply=%sum\n"
    )
    begin = END.index("  %all-reduce.1 =")
    line = END[begin : END.index("  ROOT %add.1")]
    used = END.replace("add(%all-reduce.1, %p)", "add(%all-reduce.1, %dot.2)")
    write_dump(tmp_path / "process-0", end=used.replace(line, line + second))
    write_dump(tmp_path / "process-1", end=used.replace(line, second + line))
    found = compare(tmp_path)
    (mismatch,) = found.mismatches
    assert mismatch.position == 1
    assert sorted(entry[-1] for entry, _ in mismatch.entries) == ["1", "2"]
    (divergence,) = found.divergences
    assert divergence.first is not None
    assert divergence.first.what == ("order",)


def test_a_host_whose_dump_cannot_be_read_is_left_out(hosts: Path) -> None:
    (hosts / "process-1" / "module_0003.jit_step.cpu_after_optimizations.txt").write_text("x")
    found = compare(hosts)
    assert found.divergences == []
    assert found.leftovers == []


def test_a_dump_that_changed_nothing_is_not_to_blame(tmp_path: Path) -> None:
    """XLA dumps what a pass says it changed, and it may not have."""
    idle = "0000.simp.after_reassociate.before_dce", STEP
    late = "0001.late.after_layout.before_dce"
    changed = END.replace("add(%all", "multiply(%all")
    write_dump(tmp_path / "process-0", passes=(idle, (late, END)))
    write_dump(tmp_path / "process-1", passes=((late, changed),), end=changed)
    (divergence,) = compare(tmp_path).divergences
    assert divergence.maker == "late: layout"


def test_repeated_passes_are_aligned_by_what_is_around_them(tmp_path: Path) -> None:
    """One host lacks the first of two runs of a pass."""
    first = "0000.simp.after_algsimp.before_dce", WITHOUT_COPY
    dce = "0001.simp.after_dce.before_algsimp"
    again = "0002.simp.after_algsimp.before_dce"
    other = STEP.replace("add(%all", "multiply(%all")
    write_dump(tmp_path / "process-0", passes=(first, (dce, WITHOUT_COPY), (again, WITHOUT_COPY)))
    write_dump(tmp_path / "process-1", passes=((dce, other), (again, other)), end=other)
    (divergence,) = compare(tmp_path).divergences
    assert divergence.stage == "simp.after_algsimp.before_dce"
    assert divergence.files[1] == ""


def test_a_stage_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    broken = "0001.simp.after_algsimp.before_dce", STEP.replace("copy(", "kopy(")
    changed = END.replace("add(%all", "multiply(%all")
    write_dump(tmp_path / "process-0", passes=(broken,))
    write_dump(tmp_path / "process-1", passes=(), end=changed)
    write_dump(tmp_path / "process-2", passes=(("0000.x.after_y.before_z", STEP),), end=changed)
    (divergence,) = compare(tmp_path).divergences
    assert divergence.maker == "cpu_after_optimizations"


def test_a_host_that_stopped_does_not_make_others_differ(hosts: Path) -> None:
    """Two hosts get to the same end on different ways; a third never ends."""
    passes = (PASSES[0], ("0001.simplification.after_cse.before_dce", STEP), *PASSES[1:])
    write_dump(hosts / "process-1", passes=passes)
    for path in (hosts / "process-3").iterdir():
        if "before_optimizations" not in path.name:
            path.unlink()
    found = compare(hosts)
    assert found.divergences == []
    assert [each.compilation.host for each in found.leftovers] == ["process-3"]


def test_a_report_without_its_module_is_no_compilation(hosts: Path) -> None:
    path = hosts / "process-0" / "module_0001.jit_step.cpu_after_optimizations-live-range.txt"
    path.write_text("HloLiveRange")
    assert compare(hosts) == HostFindings(1, [], [], [])


def test_ends_of_other_names_are_compared(tmp_path: Path) -> None:
    """Two backends: no stage behind the first is common."""
    for host in range(2):
        write_dump(tmp_path / f"process-{host}", passes=())
    end = tmp_path / "process-1" / "module_0003.jit_step.cpu_after_optimizations.txt"
    end.write_text(END.replace("add(%all", "multiply(%all"), encoding="utf-8")
    end.rename(end.with_name("module_0003.jit_step.gpu_after_optimizations.txt"))
    (divergence,) = compare(tmp_path).divergences
    assert divergence.maker == "cpu_after_optimizations"
    assert [path.rpartition(".")[0].rpartition(".")[2] for path in divergence.files] == [
        *("cpu_after_optimizations", "gpu_after_optimizations")
    ]
