"""Programs with all-to-alls, and with annotations of shardings."""

from __future__ import annotations

from random import Random

from pass_answers_lib.writer import Writer, listed

_GROUPS = (("{{0,1,2,3}}", 4), ("{{0,1},{2,3}}", 2), ("{{0,2},{1,3}}", 2), ("{{0},{1},{2},{3}}", 1))


def for_exchanges(dice: Random) -> str:
    """All-to-alls of arrays along any dimension, and of tuples."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick(("f32", "bf16", "s32", "pred", "c64", "s4", "f8e5m2"))
        groups, parts = writer.pick(_GROUPS)
        sizes = [writer.pick((4, 8, 4, 0)) for _ in range(writer.pick((1, 2, 3)))]
        place = writer.dice.randrange(len(sizes))
        attributes = [f"replica_groups={groups}", writer.channel() if writer.chance(0.6) else ""]
        order = writer.order(len(sizes), 0.2)
        if writer.chance(0.15) and parts > 1:
            values = [writer.parameter(kind, sizes) for _ in range(parts)]
            writer.several(values, "all-to-all", values, *attributes)
            continue
        attributes.append(f"dimensions={listed([place])}")
        value = writer.parameter(kind, sizes, order=order)
        value = writer.add(kind, sizes, "all-to-all", [value], *attributes, order=order)
        if writer.chance(0.3):
            writer.add(kind, sizes, "copy", [value], order=order)
    return writer.text(", replica_count=4")


_TARGETS = (
    *("Sharding", "SPMDShardToFullShape", "SPMDFullToShardShape", "Sharding"),
    *("xla.sdy.PropagationBarrier", "xla.sdy.FuncResultSharding", "ShardBarrierFrom"),
    *("ShardBarrierTo", "Other"),
)


def for_annotations(dice: Random) -> str:
    """Custom calls that say how values are sharded, one after the other, and what reads them."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2))):
        kind = writer.pick(("f32", "s32", "bf16"))
        sizes = writer.pick(((), (4,), (2, 3)))
        value = writer.parameter(kind, sizes)
        for _ in range(writer.pick((1, 2, 3))):
            target = f'custom_call_target="{writer.pick(_TARGETS)}"'
            sharding = writer.pick(("", "sharding={replicated}", "sharding={maximal device=0}"))
            effect = "custom_call_has_side_effect=true" if writer.chance(0.1) else ""
            source = value
            value = writer.add(kind, sizes, "custom-call", [value], target, effect, sharding)
            if writer.chance(0.3):
                value = writer.add(kind, sizes, "negate", [value], sharding)
            if writer.chance(0.2):
                writer.add(kind, sizes, "add", [source, value])
    return writer.text()
