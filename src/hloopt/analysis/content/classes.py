"""The classes of content that a comparison can leave out: one declaration for options and docs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.diagnostics import HloError, did_you_mean


@dataclass(frozen=True, slots=True)
class ContentClass:
    """A class of content, such as layouts; `help` is its line in the documentation.

    `attributes` and `header` name attributes of instructions and of the module's header that
    belong to the class as a whole. `Content` handles attributes that do so in part.
    """

    name: str
    help: str
    attributes: frozenset[str] = frozenset()
    header: frozenset[str] = frozenset()


_ALL = (
    ContentClass("names", "names of instructions, computations and the module"),
    ContentClass(
        "metadata",
        "op_name and all other metadata, origin, statistics, tables of stack frames",
        attributes=frozenset(("metadata", "origin", "statistics")),
        header=frozenset(("origin_recovery_table", "debug_attributes")),
    ),
    ContentClass(
        "locations",
        "of the metadata: files, lines and stack frames; loc(…) in bodies of custom calls",
    ),
    ContentClass("layout", "layouts of shapes: order of dimensions, tiles, memory spaces"),
    ContentClass(
        "sharding",
        "sharding, parameter_replication, and what Shardy keeps in frontend attributes",
        attributes=frozenset(("sharding", "parameter_replication")),
        header=frozenset(
            (
                "allow_spmd_sharding_propagation_to_parameters",
                "allow_spmd_sharding_propagation_to_output",
            )
        ),
    ),
    ContentClass("frontend-attributes", "frontend_attributes, other than those of Shardy"),
    ContentClass("backend-config", "backend_config", attributes=frozenset(("backend_config",))),
    ContentClass("channels", "channel_id", attributes=frozenset(("channel_id",))),
    ContentClass("control", "control dependencies"),
    ContentClass("constants", "values of constants"),
    ContentClass(
        "order",
        "the order of a schedule, and whether there is one (is_scheduled)",
        header=frozenset(("is_scheduled",)),
    ),
    ContentClass("header", "attributes of the module's header: aliasing, layout of the entry, …"),
)
CLASSES: dict[str, ContentClass] = {each.name: each for each in _ALL}
"""Every class by its name."""


def as_classes(texts: Iterable[str]) -> frozenset[str]:
    """Parse names of classes; each text may be a list with commas, `_` stands for `-`, too.

    Raises HloError for an unknown name.
    """
    found: set[str] = set()
    for text in texts:
        for part in text.split(","):
            name = part.strip().lower().replace("_", "-")
            if name not in CLASSES:
                raise HloError(
                    f"there is no class '{part.strip()}' of content",
                    help=did_you_mean(name, CLASSES) or f"classes: {', '.join(CLASSES)}",
                )
            found.add(name)
    return frozenset(found)
