"""Random scheduled programs with asynchronous operations, loops and scheduling groups."""

from __future__ import annotations

from random import Random

_ARRAY = "f32[8]"
_STATE = f"(s32[], {_ARRAY})"
_GROUP = ', frontend_attributes={_scheduling_group_id="1"}'
_HEAD = """HloModule m, is_scheduled=true, num_partitions=2

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
condition { s = (s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
"""


def random_program(seed: int, size: int = 30, *, loops: bool = True) -> str:
    """A program for two devices. The same seed gives the same text."""
    rng = Random(seed)
    body = _Lines(rng, "b")
    body.lines += [
        f"s = {_STATE} parameter(0)",
        "i = s32[] get-tuple-element(s), index=0",
        "one = s32[] constant(1)",
        "next = s32[] add(i, one)",
        f"x = {_ARRAY} get-tuple-element(s), index=1",
    ]
    body.values.append("x")
    body.add(size // 2, loops=False)
    body.lines.append(f"result = {_ARRAY} copy({body.values[-1]})")
    body.lines.append(f"ROOT t = {_STATE} tuple(next, result)")
    entry = _Lines(rng, "e")
    entry.lines += [f"p{n} = {_ARRAY} parameter({n})" for n in range(3)]
    entry.lines.append("zero = s32[] constant(0)")
    entry.values += ["p0", "p1", "p2"]
    if loops:
        entry.loop("e")
    entry.add(size, loops=loops)
    used = entry.values[-5:]
    entry.lines.append(f"ROOT r = ({', '.join([_ARRAY] * len(used))}) tuple({', '.join(used)})")
    loop = ("body {", *body.lines, "}") if loops else ()
    parts = (_HEAD, *body.functions, *entry.functions, *loop, "ENTRY main {", *entry.lines, "}")
    return "\n".join(parts)


class _Lines:
    """Instructions of a computation, and the arrays among them."""

    def __init__(self, rng: Random, prefix: str) -> None:
        self.rng = rng
        self.prefix = prefix
        self.functions: list[str] = []
        """The computations of the fusions."""
        self.lines: list[str] = []
        self.values: list[str] = []

    def add(self, count: int, *, loops: bool) -> None:
        """Add so many operations; one of them may be a group."""
        grouped = self.rng.randrange(2 * count)
        for number in range(count):
            name = f"{self.prefix}{number}"
            kind = self.rng.random()
            if number == grouped:
                self._collective(name, _GROUP, inside=True)
            elif kind < 0.25:
                self._collective(name, "", inside=False)
            elif kind < 0.32 and loops:
                self.loop(name)
            else:
                self._work(name, "")

    def _value(self) -> str:
        return self.rng.choice(self.values[-8:])

    def _work(self, name: str, attributes: str) -> None:
        a, b = self._value(), self._value()
        kind = self.rng.choice(("kLoop", "kOutput", "kInput"))
        control = ""
        if self.rng.random() < 0.1:
            control = f", control-predecessors={{{self._value()}}}"
        parameters = f"x = {_ARRAY} parameter(0) y = {_ARRAY} parameter(1)"
        self.functions.append(f"{name}f {{ {parameters} ROOT z = {_ARRAY} add(x, y) }}")
        call = f"fusion({a}, {b}), kind={kind}, calls={name}f{control}{attributes}"
        self.lines.append(f"{name} = {_ARRAY} {call}")
        self.values.append(name)

    def _collective(self, name: str, attributes: str, *, inside: bool) -> None:
        operand, done = self._value(), f"{name}d"
        if self.rng.random() < 0.5:
            pairs = f"source_target_pairs={{{{0,1}},{{1,0}}}}, channel_id={self._channel()}"
            start = f"({_ARRAY}, {_ARRAY}) collective-permute-start({operand}), {pairs}"
            end = f"collective-permute-done({name})"
        else:
            copied = f"{name}c"
            self.lines.append(f"{copied} = {_ARRAY} copy({operand})")
            groups = "replica_groups={{0,1}}, use_global_device_ids=true, channel_id="
            start = f"{_ARRAY} all-reduce-start({copied}), {groups}{self._channel()}, to_apply=sum"
            end = f"all-reduce-done({name})"
        self.lines.append(f"{name} = {start}{attributes}")
        if inside:
            self._work(f"{name}w", attributes)
        self.lines.append(f"{done} = {_ARRAY} {end}{attributes}")
        self.values.append(done)

    def _channel(self) -> int:
        return len(self.lines) + (1000 if self.prefix == "b" else 1)

    def loop(self, name: str) -> None:
        self.lines.append(f"{name}z = s32[] copy(zero)")
        self.lines.append(f"{name}v = {_ARRAY} copy({self._value()})")
        self.lines.append(f"{name}i = {_STATE} tuple({name}z, {name}v)")
        self.lines.append(f"{name}w = {_STATE} while({name}i), condition=condition, body=body")
        self.lines.append(f"{name} = {_ARRAY} get-tuple-element({name}w), index=1")
        self.values.append(name)
