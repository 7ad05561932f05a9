"""`hloopt dumps` on what JAX dumps: files are known, chains are right, a planted host is found."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.jax_dumps.dumps import Dumps

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.diagnostics import HloError
from hloopt.dumps.chain import Chain, Effect
from hloopt.dumps.folder import Compilation, scan
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.names import HLO, FileKind, Phase
from hloopt.dumps.summary import summarize
from hloopt.dumps.tracking import track
from hloopt.files import read_module
from hloopt.ir.devices.collective_mode import named_groups
from hloopt.reports.diff.comparison import diff_modules

pytestmark = pytest.mark.oracle

PROGRAMS = ["rnn", "transformer", "moe"]
_SWAPPED = {0: 7, 7: 0}
IGNORED = frozenset(("names", "metadata", "locations"))


def main_module(dumps: Dumps) -> Compilation:
    return next(c for c in scan([str(dumps.folder / "xla")]).compilations if c.id == 0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_file_is_known_and_none_misread(
    program: str, dumps_of: Callable[[str], Dumps]
) -> None:
    dumps = dumps_of(program)
    found = scan([str(dumps.folder / "xla")])
    assert found.problems == []
    assert len(found.files) > 200
    assert [file.path for file in found.files if file.kind is FileKind.OTHER] == []
    owned = {f.path for c in found.compilations for files in c.stages.values() for f in files}
    for file in found.files:
        is_hlo = file.path in owned
        assert is_hlo is (file.kind in HLO), file.path
        try:
            module = read_module(file.path)
        except (HloError, OSError):
            assert not is_hlo, file.path
        else:
            assert is_hlo, file.path
            assert f".{module.name}." in file.path
    assert all(c.is_finished and c.first for c in found.compilations)
    assert {c.first.phase for c in found.compilations if c.first} == {Phase.BEGIN}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_chain_is_what_diff_says(program: str, dumps_of: Callable[[str], Dumps]) -> None:
    dumps = dumps_of(program)
    chain = Chain.of(main_module(dumps), Gatherer(2, None))
    paths = list(dumps.passes.values())
    assert [step.path for step in chain.steps] == list(map(str, paths))
    texts = [path.read_bytes() for path in paths]
    for step, (before, after) in zip(chain.steps[1:], pairwise(range(len(paths))), strict=True):
        same = texts[before] == texts[after]
        assert (step.effect is Effect.NOTHING) is same
        if not same:
            old, new = (read_module(str(paths[place])) for place in (before, after))
            is_changed = not diff_modules(old, new, IGNORED).is_identical
            assert (step.effect is Effect.PROGRAM) is is_changed, step.maker
    counts = [step.facts.instructions for step in chain.steps if step.facts]
    pattern = re.compile(r"^ +(?:ROOT )?%[\w.\-]+ = ", re.M)
    assert counts == [len(pattern.findall(text.decode())) for text in texts]


@pytest.mark.parametrize("program", ["transformer", "moe"])
def test_a_planted_difference_on_host_3_of_8(
    program: str, dumps_of: Callable[[str], Dumps], tmp_path: Path
) -> None:
    """The groups of a collective have two devices exchanged from one pass on."""
    compilation = main_module(dumps_of(program))
    files = {stage: compilation.hlo(stage).path for stage in compilation.stages}
    for host in range(8):
        folder = tmp_path / f"process-{host}"
        folder.mkdir()
        for path in files.values():
            shutil.copy(path, folder)
    begin = next(s for s in files if s.after == "spmd-partitioning")
    module = read_module(files[begin])
    planted = collectives_of(module)[0].instruction
    old = planted.attributes["replica_groups"]
    lists = [[_SWAPPED.get(device, device) for device in g] for g in named_groups(planted)]
    new = "{" + ",".join("{" + ",".join(map(str, each)) + "}" for each in lists) + "}"
    text = _text(files[begin])
    start = text.index(f"%{planted.name} = ")
    other = text[:start] + text[start:].replace(f"replica_groups={old}", f"replica_groups={new}", 1)
    for stage, path in files.items():
        if stage >= begin:  # later dumps of this host are of that program, too
            (tmp_path / "process-3" / Path(path).name).write_text(other)
    found = scan([str(tmp_path)])
    (divergence,) = summarize([str(tmp_path)], found, Gatherer(2, None)).hosts.divergences
    assert divergence.maker == "spmd-partitioner: spmd-partitioning"
    assert divergence.hosts == [[f"process-{n}" for n in range(8) if n != 3], ["process-3"]]
    assert divergence.first is not None
    assert divergence.first.where == f"%{planted.name} in {planted.parent.name}"
    assert divergence.first.what == ("replica_groups",)


def test_an_operation_is_followed_into_its_fusion(dumps_of: Callable[[str], Dumps]) -> None:
    chain = Chain.of(main_module(dumps_of("transformer")), Gatherer(2, None))
    names = re.findall(r'op_name="(jit\([^"]*/tanh)"', _text(chain.steps[0].path))
    names += re.findall(r'op_name="(jit\([^"]*/mul)"', _text(chain.steps[0].path))
    events = track(chain, names[0])
    assert events[0].step.number == 0
    assert any("fused" in event.verbs for event in events)


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
