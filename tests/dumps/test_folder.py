"""Folders of dumps: hosts, runs, compilations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.dumps.dump_maker import write_dump

from hloopt.diagnostics import HloError
from hloopt.dumps.folder import DumpFolders, scan
from hloopt.files import find_inputs

HOSTS = ["process-3", "host7", "rank12", "worker_1", "3", "t1v-n-abc-w-2", "node004", "replica=0"]
RUNS = ["run1", "2026-11-27", "attempt-2", "step_3", "baseline", "v2", "20240102_101530"]
RUNS += ["job-1234", "train_step_3", "bs=32", "lr_0.001", "20240102-1015", "1732700000"]


def places(found: DumpFolders) -> list[tuple[str, str, str]]:
    return [(each.run, each.host, each.name) for each in found.compilations]


@pytest.mark.parametrize("name", HOSTS)
def test_a_folder_names_the_host(name: str, tmp_path: Path) -> None:
    write_dump(tmp_path / name)
    assert places(scan([str(tmp_path)])) == [("", name, "jit_step")]


@pytest.mark.parametrize("name", RUNS)
def test_or_the_run(name: str, tmp_path: Path) -> None:
    write_dump(tmp_path / name)
    assert places(scan([str(tmp_path)])) == [(name, "", "jit_step")]


def test_runs_of_hosts_in_natural_order(tmp_path: Path) -> None:
    for host in (10, 9):
        for run in ("run10", "run9"):
            write_dump(tmp_path / run / f"process-{host}" / "xla")
    assert places(scan([str(tmp_path)])) == [
        (f"{run}/xla", f"process-{host}", "jit_step")
        for run in ("run9", "run10")
        for host in (9, 10)
    ]


def test_roots_of_hosts_are_one_run(tmp_path: Path) -> None:
    for host in range(2):
        write_dump(tmp_path / f"process-{host}")
    roots = [str(tmp_path / f"process-{host}") for host in range(2)]
    assert [place[:2] for place in places(scan(roots))] == [("", "process-0"), ("", "process-1")]


def test_an_expression_says_what_the_host_is(tmp_path: Path) -> None:
    for name in ("east_a", "east_b"):
        write_dump(tmp_path / "x" / name)
    found = scan([str(tmp_path)], host=r"east_(\w)")
    assert [place[:2] for place in places(found)] == [("x", "a"), ("x", "b")]
    either = scan([str(tmp_path)], host=r"nothing(\d)|east_(\w)")
    assert [place[1] for place in places(either)] == ["a", "b"]
    with pytest.raises(HloError, match="no regular expression"):
        scan([str(tmp_path)], host="(")


def test_compilations_of_one_program_are_numbered(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        write_dump(tmp_path, id=number)
    write_dump(tmp_path, id=4, name="SyncTensorsGraph.12")
    write_dump(tmp_path, id=5, name="SyncTensorsGraph.13")
    found = scan([str(tmp_path)]).compilations
    assert [(c.id, c.program, c.occurrence) for c in found] == [
        (2, "jit_step", 1),
        (4, "SyncTensorsGraph", 1),
        (5, "SyncTensorsGraph", 2),
        (9, "jit_step", 2),
        (10, "jit_step", 3),
    ]


def test_files_go_to_their_module(tmp_path: Path) -> None:
    write_dump(tmp_path, id=1, name="jit_f")
    write_dump(tmp_path, id=1, name="jit_f.2")  # two processes in one folder
    (tmp_path / "module_0001.jit_f.2.16.ptx").write_text("")
    part = tmp_path / "module_0001.jit_f"
    part.mkdir()
    (part / "compile_options.pb").write_text("")
    (tmp_path / "notes.txt").write_text("")
    found = scan([str(tmp_path)])
    beside = {
        c.name: sorted(os.path.basename(f.path) for f in c.beside) for c in found.compilations
    }
    assert beside == {
        "jit_f": ["module_0001.jit_f.debug_options"],
        "jit_f.2": ["module_0001.jit_f.2.16.ptx", "module_0001.jit_f.2.debug_options"],
    }
    assert len(found.files) == 2 * 6 + 3
    assert {c.folder for c in found.compilations} == {str(tmp_path)}


def test_a_text_is_read_before_a_proto(tmp_path: Path) -> None:
    write_dump(tmp_path)
    for suffix in (".hlo.pb", ".a.txt"):
        (tmp_path / f"module_0003.jit_step.before_optimizations{suffix}").write_text("")
    (one,) = scan([str(tmp_path)]).compilations
    assert one.first is not None
    assert one.hlo(one.first).path.endswith("optimizations.txt")
    assert len(one.stages[one.first]) == 2


def test_what_cannot_be_listed_is_told(tmp_path: Path) -> None:
    write_dump(tmp_path)
    (tmp_path / "module_0004.jit_g.before_optimizations.txt").symlink_to(tmp_path / "gone")
    found = scan([str(tmp_path)])
    assert [os.path.basename(path) for path, _ in found.problems] == [
        "module_0004.jit_g.before_optimizations.txt"
    ]
    assert len(found.compilations) == 1
    for bad in ("missing", "module_0003.jit_step.debug_options"):
        with pytest.raises(HloError, match="cannot list"):
            scan([str(tmp_path / bad)])


def test_a_pipe_is_told_and_not_read(tmp_path: Path) -> None:
    write_dump(tmp_path)
    os.mkfifo(tmp_path / "module_0004.jit_g.before_optimizations.txt")
    found = scan([str(tmp_path)])
    assert [why for _, why in found.problems] == ["it is no regular file"]
    assert len(found.compilations) == 1
    assert len(find_inputs([str(tmp_path)])) == 5


def test_folders_behind_links_are_looked_into_once(tmp_path: Path) -> None:
    write_dump(tmp_path / "real")
    (tmp_path / "dump").mkdir()
    for host in range(2):
        write_dump(tmp_path / f"disk-{host}" / "xla")
        (tmp_path / "dump" / f"process-{host}").symlink_to(tmp_path / f"disk-{host}" / "xla")
    (tmp_path / "dump" / "again").symlink_to(tmp_path / "dump")
    found = scan([str(tmp_path / "dump"), f"{tmp_path}/./dump/"])
    assert [place[1] for place in places(found)] == ["process-0", "process-1"]


def test_an_empty_folder_has_no_compilations(tmp_path: Path) -> None:
    assert scan([str(tmp_path)]).compilations == []
