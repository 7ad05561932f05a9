"""Each dump of a compilation tells the stage it is at, as text and as proto."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.jax_dumps.dumps import Dumps, proto_of

from hloopt.analysis.stage import Stage
from hloopt.files import read_module

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("program", ["rnn", "transformer", "moe"])
def test_a_dump_tells_its_stage(program: str, dumps_of: Callable[[str], Dumps]) -> None:
    dumps = dumps_of(program)
    names = list(dumps.passes)
    assert len(names) > 50

    def first(*parts: str) -> int:
        """The first dump whose name contains one of the parts; 0 without any."""
        return next((i for i, n in enumerate(names) if any(part in n for part in parts)), 0)

    partitioned = first("spmd-cleanup.", "after_spmd-partitioning")
    flat = first("after_flatten-call-graph")
    fused = first("after_fusion")
    copied = first("after_copy-insertion")
    scheduled = first("HLO_passes_after_scheduling", "after_optimizations")
    for number, (name, path) in enumerate(dumps.passes.items()):
        for file in (path, proto_of(path)):
            stage = Stage.of(read_module(str(file)))
            assert stage.devices == (1 if program == "rnn" else 8), name
            assert stage.partitioned.holds is (number >= partitioned), name
            assert stage.scheduled.holds is (number >= scheduled), name
            assert not (stage.flat.holds and number < flat), name
            assert stage.fused.holds is (number >= fused), name
            assert number >= copied or not stage.copies_inserted.holds, name
            assert stage.copies_inserted.holds or number < scheduled, name
            assert not stage.memory_spaces, name
            assert stage.tiled is None, name
