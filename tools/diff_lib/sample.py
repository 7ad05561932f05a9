"""The sample of known pairs: kinds of edits, each done to modules drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from diff_lib import edits
from diff_lib.known_pair import Edit, KnownPair, make_pair
from diff_lib.layered import layered_pair
from diff_lib.naming import NAMINGS
from hloopt.diagnostics import HloError
from hloopt.files import read_module


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of edit; `namings` are the ways to name its result."""

    name: str
    count: int
    """Number of pairs of this kind in a sample of 60."""
    edits: Sequence[Edit | None]
    """Edits that the pairs take in turn; None: a program of equal layers loses one."""
    namings: Sequence[str] = tuple(NAMINGS)
    is_reversed: bool = False
    is_pass: bool = False


_PASSES = (
    *("algsimp", "cse", "dce", "call-inliner", "flatten-call-graph", "collective-pipeliner"),
    *("tuple-simplifier", "computation-deduplicator", "reshape-mover", "simplify-while-loops"),
    *("while-loop-all-reduce-code-motion", "hlo-memory-scheduler", "all-reduce-combiner"),
    *("constant-folding", "unflatten-call-graph"),
)
KINDS = (
    Kind("renamed", 5, (edits.nothing,), ("at random", "swapped")),
    Kind("renumbered", 5, (edits.nothing,), ("renumbered", "renumbered in one sequence")),
    Kind("reordered", 6, (edits.reorder,)),
    Kind("instructions inserted", 8, tuple(edits.insert(count) for count in (1, 2, 3, 5))),
    Kind("instructions removed", 8, tuple(edits.remove(count) for count in (1, 2, 3, 5))),
    Kind("layer inserted", 4, (edits.remove_segment, edits.remove_segment, None), is_reversed=True),
    Kind("layer removed", 4, (edits.remove_segment, None, edits.remove_segment)),
    Kind("sharding changed", 5, (edits.change_shardings,)),
    Kind("pass applied", 15, tuple(map(edits.run_passes, _PASSES)), is_pass=True),
)


def draw(
    sources: Sequence[Path], seed: int, counts: Mapping[str, int] | None = None
) -> Iterator[tuple[Kind, KnownPair]]:
    """Draw pairs of every kind, as many as `counts` says; deterministic for a seed.

    If an edit finds nothing to do in a module, another module is drawn.
    """
    for kind in KINDS:
        for number in range(kind.count if counts is None else counts[kind.name]):
            edit = kind.edits[number % len(kind.edits)]
            random = Random(f"{seed} {kind.name} {number}")
            pair = _draw_one(kind, edit, sources, random)
            if pair is not None:
                yield kind, pair.reversed() if kind.is_reversed else pair


def _draw_one(
    kind: Kind, edit: Edit | None, sources: Sequence[Path], random: Random
) -> KnownPair | None:
    if edit is None:
        return layered_pair(random, random.choice(("kept", "renumbered")))
    for path in random.sample(sources, len(sources)):
        naming = random.choice(list(kind.namings))
        module = read_module(str(path))
        try:
            pair = make_pair(path.name, module, edit, naming, random)
        except HloError:  # the pass refuses this module
            continue
        if pair is not None:
            return pair
    return None
