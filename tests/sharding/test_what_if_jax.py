"""`hloopt sharding what-if` beside the compile of the changed program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.cli import main
from hloopt.files import load

pytestmark = pytest.mark.oracle
PROGRAM = Path(__file__).with_name("constrained_transformer.py")


@pytest.fixture(scope="module", params=["shardy", "gspmd"])
def dumps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `with` and `without` of dumps of a program with three constraints and without."""
    pytest.importorskip("jax", reason="needs the extra xla")
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("with", "without"):
        flags = f"--xla_dump_to={folder / name} --xla_dump_hlo_pass_re=spmd-partitioning"
        environment = {
            **os.environ,
            "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count=8",
            "JAX_PLATFORMS": "cpu",
            "JAX_USE_SHARDY_PARTITIONER": str(request.param == "shardy").lower(),
        }
        subprocess.run([sys.executable, str(PROGRAM), name], env=environment, check=True)
    return folder


def counts(path: Path) -> dict[str, int]:
    """The collectives of a module by kind."""
    made = Counter(collective.kind.value for collective in collectives_of(load(str(path))))
    return dict(sorted(made.items()))


def what_if(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, int]]:
    """The collectives before and after a change, by kind."""
    assert main(["sharding", "what-if", str(path), *options, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    return [
        {kind: amount["count"] for kind, amount in sorted(report[side]["collectives"].items())}
        for side in ("before", "after")
    ]


def test_dropping_three_constraints_changes_collectives_as_the_compile_of_the_changed_program(
    dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (dumps / "with").glob("*jit_step.before_optimizations.txt")
    before, after = what_if(path, capsys, "--drop", "opcode=custom-call, target=Sharding")
    (made,), (changed,) = (
        (dumps / name).glob("*jit_step*.after_spmd-partitioning.*.txt")
        for name in ("with", "without")
    )
    assert before == counts(made)
    assert after == counts(changed)
    assert before != after


@pytest.mark.parametrize("propagation", ["sdy", "gspmd"])
def test_a_dump_is_partitioned_again_as_it_was(
    propagation: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    name = str(shared / "oracle" / "spmd" / "jax" / f"transformer.{propagation}")
    drop = [f"--drop=%sharding_constraint.{number}" for number in (3, 4, 5)]
    before, after = what_if(Path(f"{name}.before_optimizations.hlo.gz"), capsys, *drop)
    assert before == counts(Path(f"{name}.after.hlo.gz")) != after
