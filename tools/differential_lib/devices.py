"""The devices of a program: counts, groups, channels, pairs, and what the header says of them."""

from __future__ import annotations

import random

_GRIDS = ((1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (1, 2), (1, 3), (1, 4), (1, 4), (2, 2), (2, 2))
"""Replicas and partitions."""


class Devices:
    """The way in which collectives name devices, one choice for a program."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.replicas, self.partitions = dice.choice(_GRIDS)
        self.count = self.replicas * self.partitions
        self._channels = dice.choice(("different", "different", "equal", "few"))
        # Without counts, nobody knows which devices are replicas where there are partitions, too.
        is_plain = 1 in (self.replicas, self.partitions)
        others = ("absent", "too small") if is_plain else ()
        self._header: str = dice.choice(("present", "present", *others))
        self._last_channel = 0

    def header(self) -> str:
        """The counts in the header; absent or too small ones leave it to the collectives."""
        if self._header == "absent":
            return ""
        counts = [self.replicas, self.partitions]
        if self._header == "too small":  # the verifier refuses all counts between one and enough
            counts = [1, 1]
        names = ("replica_count", "num_partitions")
        return "".join(
            f", {name}={count}"
            for name, count in zip(names, counts, strict=True)
            if count > 1 or self.dice.random() < 0.3
        )

    @property
    def is_told(self) -> bool:
        """Whether collectives may leave it to the header which devices there are."""
        return self._header == "present"

    @property
    def id_opcodes(self) -> tuple[str, ...]:
        """Operations whose value tells devices apart; on one device, both are 0."""
        chosen = [("replica-id",)] * (self.replicas > 1) + [("partition-id",)] * (
            self.partitions > 1
        )
        return sum(chosen, ()) or ("replica-id", "partition-id")

    def channel(self) -> str:
        self._last_channel += 1
        number = {"different": self._last_channel, "equal": 1, "few": 1 + self._last_channel % 3}
        return f"channel_id={number[self._channels]}"

    def reducing(self, *, may_be_uneven: bool = False) -> tuple[int, str]:
        """Group size and attributes of all-reduce, all-gather or reduce-scatter."""
        modes = ["flattened", "flattened"]
        if self.replicas > 1 or self.partitions == 1:
            modes += ["replica", "replica"]
        if self.partitions > 1 and self.is_told:
            modes += ["replica and partition"]
        match self.dice.choice(modes):
            case "replica":
                size, groups = self._groups(self.replicas, may_be_uneven)
                return size, groups
            case "flattened":
                size, groups = self._groups(self.count, may_be_uneven, may_be_empty=False)
                return size, f"{groups}, {self.channel()}, use_global_device_ids=true"
            case _:
                size, groups = self._groups(self.replicas)
                return size * self.partitions, f"{groups}, {self.channel()}"

    def exchanging(self) -> tuple[int, str]:
        """Group size and attributes of all-to-all and collective-broadcast."""
        if self.partitions > 1 and (self.replicas == 1 or self.dice.random() < 0.5):
            size, groups = self._groups(self.partitions)
            return size, f"{groups}, {self.channel()}"
        return self._groups(self.replicas)

    def pairs(self) -> str:
        """Attributes of a collective-permute."""
        is_replica = self.replicas > 1 or self.partitions == 1
        if self.partitions > 1 and self.dice.random() < 0.6:
            is_replica = False
        count = self.replicas if is_replica else self.partitions
        ids = list(range(count))
        match self.dice.choice(("ring", "back", "chain", "ahead", "one", "some", "none")):
            case "ring":
                pairs = [(i, (i + 1) % count) for i in ids]
            case "back":
                pairs = [((i + 1) % count, i) for i in ids]
            case "chain":
                pairs = [(i, i + 1) for i in ids[:-1]]
            case "ahead":
                pairs = [(0, count - 1)] if count > 1 else []
            case "one":
                pairs = [(self.dice.choice(ids), self.dice.choice(ids))]
            case "none":
                pairs = []
            case _:
                targets = self.dice.sample(ids, count)
                pairs = [
                    pair for pair in zip(ids, targets, strict=True) if self.dice.random() < 0.7
                ]
        text = ",".join(f"{{{a},{b}}}" for a, b in pairs)
        channel = f", {self.channel()}" if not is_replica else ""
        return f"source_target_pairs={{{text}}}{channel}"

    def _groups(
        self, count: int, may_be_uneven: bool = False, *, may_be_empty: bool = True
    ) -> tuple[int, str]:
        """Groups of the ids below `count`, and their size; 0 where sizes differ."""
        ids = list(range(count))
        if may_be_uneven and count > 2 and self.dice.random() < 0.1:
            return 0, f"replica_groups={_text([ids[:1], ids[1:]])}"
        sizes = [size for size in (1, 2, 3, 4) if count % size == 0]
        size = count if self.dice.random() < 0.6 else self.dice.choice(sizes)
        form = self.dice.choice(("list", "list", "list", "iota", "strided", "shuffled", "empty"))
        if form == "empty" and size == count and may_be_empty and self.is_told:
            return size, "replica_groups={}"
        if form == "iota":
            return size, f"replica_groups=[{count // size},{size}]<=[{count}]"
        if form == "strided":
            return (
                size,
                f"replica_groups={_text([ids[k :: count // size] for k in range(count // size)])}",
            )
        if form == "shuffled":
            self.dice.shuffle(ids)
        return size, f"replica_groups={_text([ids[k : k + size] for k in range(0, count, size)])}"


def _text(groups: list[list[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"
