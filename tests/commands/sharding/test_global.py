"""`hloopt equivalent --global`: exit codes and messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main
from hloopt.compilers import partitioning
from hloopt.files import load
from hloopt.ir import Module
from hloopt.text import print_module

Capture = pytest.CaptureFixture[str]


def test_both_sides_of_the_partitioner_are_equal(capsys: Capture) -> None:
    assert main(["equivalent", "--global", *paths_of("gathered"), "--seeds", "1"]) == 0
    assert "equal: 1 output" in capsys.readouterr().out


def test_a_difference_is_found(tmp_path: Path, capsys: Capture) -> None:
    before, after = paths_of("remat")
    text = Path(after).read_text().replace(" add(%", " subtract(%", 1)
    (tmp_path / "wrong.hlo").write_text(text)
    assert main(["equivalent", "--global", before, str(tmp_path / "wrong.hlo")]) == 1
    assert "elements differ on device" in capsys.readouterr().out


def test_the_same_side_twice_is_refused(tmp_path: Path, capsys: Capture) -> None:
    before, _ = paths_of("gathered")
    assert main(["equivalent", "--global", before, before]) == 1
    assert "where its sharding makes it" in capsys.readouterr().out


LARGE = """HloModule dot, num_partitions=4
ENTRY e {
  l = f32[4,4096] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  r = f32[4,4096] parameter(1), sharding={devices=[2,2]<=[4]}
  ROOT d = f32[4096,4096] dot(l, r), lhs_contracting_dims={0}, rhs_contracting_dims={0},
    sharding={devices=[2,2]%s}
}
"""


def shrunk(*paths: Path) -> int:
    return main(["equivalent", "--global", "--shrink", *map(str, paths), "--seeds", "1"])


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "before.hlo"
    path.write_text(LARGE % "<=[4]")
    return path


def test_the_partitioner_runs_again_on_the_smaller_program(
    large: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    before, after = map(load, paths_of("gathered"))
    given: list[Module] = []

    def partition_alone(program: Module, folder: Path) -> Module:
        given.append(program)
        return after

    monkeypatch.setattr(partitioning, "partition_alone", partition_alone)
    assert shrunk(*map(Path, paths_of("gathered"))) == 0
    assert "XLA's partitioner made B again, of the smaller A" in capsys.readouterr().err
    assert [program.name for program in given] == [before.name] * 2


def test_a_partitioner_that_makes_something_else_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    other = load(paths_of("summed")[1])
    monkeypatch.setattr(partitioning, "partition_alone", lambda program, folder: other)
    assert shrunk(*map(Path, paths_of("gathered"))) == 2
    err = capsys.readouterr().err
    assert "XLA's partitioner makes other collectives of gathered here" in err


def test_without_the_option_sizes_do_not_shrink_together(capsys: Capture) -> None:
    before, after = paths_of("gathered")
    assert main(["equivalent", "--shrink", before, after]) == 2
    assert "with --global the partitioner runs again" in capsys.readouterr().err


@pytest.mark.oracle
@pytest.mark.parametrize(("devices", "code"), [("<=[4]", 0), ("1,0,3,2", 1)])
def test_a_fault_of_the_partitioner_is_there_in_small(
    devices: str, code: int, large: Path, tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    large.write_text(LARGE % devices)
    after = tmp_path / "after.hlo"
    made = partitioning.partition_alone(load(str(large)), tmp_path / "xla")
    after.write_text(print_module(made))
    assert shrunk(large, after) == code
    captured = capsys.readouterr()
    assert "shrunk: " in captured.err
    assert ("elements differ on device 0" in captured.out) == bool(code)
