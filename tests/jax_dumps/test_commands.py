"""`hloopt run` and `hloopt equivalent` on the arrays of JAX, as people give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.jax_dumps.dumps import STAGES, Dumps, proto_of

from hloopt.cli import main
from hloopt.equivalence.agreement import first_difference

pytestmark = pytest.mark.oracle

LAST = "after_optimizations"


@pytest.fixture(params=["rnn", "transformer", "moe"])
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


@pytest.mark.parametrize("stage", ["before_optimizations", "after_partitioning", LAST])
def test_run_reads_the_inputs_and_writes_the_outputs_of_jax(
    dumps: Dumps, stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    out = tmp_path / "out.npz"
    part = "" if dumps.is_partitioned(stage) else "whole_"
    inputs = str(dumps.folder / f"{part}inputs.npz")
    assert main(["run", str(dumps.stages[stage]), "--input", inputs, "-o", str(out)]) == 0
    found = np.load(out)
    expected = np.load(dumps.folder / f"{part}outputs.npz")
    checked = set()
    for key in found:
        leaf = key.partition("@")[0]  # whole, on each device; or of the only one
        name = next(name for name in (key, leaf, f"{leaf}@0") if name in expected)
        assert first_difference(found[key], expected[name]) is None, key
        checked.add(name)
    assert {name.partition("@")[0] for name in checked} == {
        name.partition("@")[0] for name in expected
    }


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != LAST])
def test_every_stage_computes_what_the_last_one_does(
    dumps: Dumps, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    pair = (str(dumps.stages[stage]), str(proto_of(dumps.stages[LAST])))
    inputs = str(dumps.folder / "whole_inputs.npz")
    assert main(["equivalent", *pair, "--input", inputs]) == 0
    assert capsys.readouterr().out.startswith("equal: ")
