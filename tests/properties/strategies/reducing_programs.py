"""A Hypothesis strategy for programs that combine, slice and reduce again what was reduced."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

_OPERATIONS = ("add", "add", "maximum", "multiply")
_GRIDS = ((1, 2), (2, 1), (1, 4), (4, 1), (2, 2))


@dataclass
class _Program:
    """A program while it is drawn; `values` are vectors of 8 numbers."""

    draw: st.DrawFn
    replicas: int
    partitions: int
    lines: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=lambda: ["x", "y", "same"])
    results: list[tuple[str, str]] = field(default_factory=list)
    names: int = 0

    def choose(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def add(self, shape: str, rest: str) -> str:
        self.names += 1
        self.lines.append(f"  v{self.names} = {shape} {rest}")
        return f"v{self.names}"

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions

    def participants(self) -> str:
        self.names += 1
        mode = self.choose("replicas", "all", "global")
        count = self.devices if mode == "global" else self.replicas
        size = self.draw(st.sampled_from([n for n in (1, 2, 4) if n <= count]))
        numbers = list(range(count))
        if self.draw(st.booleans()):
            numbers = self.draw(st.permutations(numbers))
        if self.draw(st.booleans()) and size == 2 and count == 4:
            numbers = [0, 2, 1, 3]
        cuts = [",".join(map(str, numbers[i : i + size])) for i in range(0, count, size)]
        groups = "{" + ",".join(f"{{{cut}}}" for cut in cuts) + "}"
        channel = "" if mode == "replicas" else f", channel_id={self.names}"
        is_global = ", use_global_device_ids=true" if mode == "global" else ""
        return f"replica_groups={groups}{channel}{is_global}"

    def reduced(self, value: str, operation: str, participants: str) -> str:
        return self.add("f32[8]", f"all-reduce({value}), {participants}, to_apply={operation}.f32")

    def combine(self) -> None:
        """Two or three results of collectives, combined."""
        operation, participants = self.choose(*_OPERATIONS), self.participants()
        form = self.choose("whole", "slice", "pad", "part", "convert")
        element = "f64" if form == "convert" else "f32"
        start = self.add("s32[]", "constant(1)")
        zero = self.add("f32[]", f"constant({self.choose('0', '1')})")
        found: list[str] = []
        size = 8
        for _ in range(self.draw(st.integers(2, 3))):
            value = self.choose(*self.values)
            if self.draw(st.integers(0, 4)) == 0:
                participants = self.participants()
            reduced = self.reduced(value, operation, participants)
            if form == "slice":
                size = 4
                reduced = self.add("f32[4]", f"slice({reduced}), slice={{[2:6]}}")
            elif form == "pad":
                size = 12
                reduced = self.add("f32[12]", f"pad({reduced}, {zero}), padding=2_2")
            elif form == "part":
                size = 4
                reduced = self.add(
                    "f32[4]", f"dynamic-slice({reduced}, {start}), dynamic_slice_sizes={{4}}"
                )
            elif form == "convert":
                reduced = self.add("f64[8]", f"convert({reduced})")
            found.append(reduced)
        shape = f"{element}[{size}]"
        total = found[0]
        for value in found[1:]:
            total = self.add(shape, f"{operation}({total}, {value})")
        self.results.append((shape, total))

    def combine_parts(self) -> None:
        """Two or three results of reduce-scatters over all devices, combined."""
        operation, size = self.choose(*_OPERATIONS), 8 // self.devices
        ranks = list(range(self.devices))
        total = ""
        for _ in range(self.draw(st.integers(2, 3))):
            if self.draw(st.integers(0, 4)) == 0:
                ranks.reverse()
            self.names += 1
            groups = "{{" + ",".join(map(str, ranks)) + "}}"
            part = self.add(
                f"f32[{size}]",
                f"reduce-scatter({self.choose(*self.values)}), replica_groups={groups}, "
                f"channel_id={self.names}, use_global_device_ids=true, dimensions={{0}}, "
                f"to_apply={operation}.f32",
            )
            total = self.add(f"f32[{size}]", f"{operation}({total}, {part})") if total else part
        self.results.append((f"f32[{size}]", total))

    def fold(self) -> None:
        """A result that is reduced again."""
        operation = self.choose(*_OPERATIONS)
        value = self.reduced(self.choose(*self.values), operation, self.participants())
        value = self.reduced(value, operation, self.participants())
        self.results.append(("f32[8]", value))
        self.values.append(value)

    def keep_part(self, *sizes: int) -> None:
        """A part of a result for each device, where its number says."""
        size = self.draw(st.sampled_from(sizes or (2, 3, 4)))
        numbers = range(self.devices)
        starts = [number * size % 8 for number in numbers]
        if self.draw(st.booleans()):
            starts = self.draw(st.permutations(starts))
        if self.draw(st.booleans()):
            starts = [start % (2 * size) for start in starts]
        own = self.add("u32[]", "partition-id()")
        replica = self.add("u32[]", "replica-id()")
        count = self.add("u32[]", f"constant({self.partitions})")
        number = self.add("u32[]", f"multiply({replica}, {count})")
        number = self.add("u32[]", f"add({number}, {own})")
        listed = ", ".join(map(str, starts))
        table = self.add(f"s32[{self.devices}]", f"constant({{{listed}}})")
        entry = self.add("s32[1]", f"dynamic-slice({table}, {number}), dynamic_slice_sizes={{1}}")
        start = self.add("s32[]", f"reshape({entry})")
        everyone = "{{" + ",".join(map(str, numbers)) + "}}"
        participants = f"replica_groups={everyone}, channel_id=900, use_global_device_ids=true"
        if self.draw(st.booleans()):
            participants = self.participants()
        value = self.reduced(self.choose(*self.values), "add", participants)
        part = self.add(
            f"f32[{size}]", f"dynamic-slice({value}, {start}), dynamic_slice_sizes={{{size}}}"
        )
        self.results.append((f"f32[{size}]", part))
        if self.devices == 4 and self.draw(st.booleans()):
            halves = "replica_groups={{0,1},{2,3}}, channel_id=901, use_global_device_ids=true"
            self.results.append(("f32[8]", self.reduced("x", "add", halves)))

    def several(self) -> None:
        """One collective of several values."""
        shapes = ("f32[8]", "f32[4,2]", "f32[]")
        matrix = self.add("f32[4,2]", f"reshape({self.choose(*self.values)})")
        scalar = self.add("f32[]", "constant(3)")
        values = (self.choose(*self.values), matrix, scalar)
        self.results.append(
            (
                f"({', '.join(shapes)})",
                self.add(
                    f"({', '.join(shapes)})",
                    f"all-reduce({', '.join(values)}), {self.participants()}, to_apply=add.f32",
                ),
            )
        )

    def text(self) -> str:
        reducers = "".join(
            f"{name}.f32 {{ a = f32[] parameter(0) b = f32[] parameter(1) "
            f"ROOT c = f32[] {name}(a, b) }}\n"
            for name in sorted(set(_OPERATIONS))
        )
        shapes = ", ".join(shape for shape, _ in self.results)
        values = ", ".join(value for _, value in self.results)
        return (
            f"HloModule m, replica_count={self.replicas}, num_partitions={self.partitions}\n"
            f"{reducers}ENTRY main {{\n  x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n"
            "  same = f32[8] constant({1,2,3,4,5,6,7,8})\n"
            + "\n".join(self.lines)
            + f"\n  ROOT all = ({shapes}) tuple({values})\n}}\n"
        )


@st.composite
def reducing_program_texts(draw: st.DrawFn, *, halves: bool = False) -> str:
    """A module that reduces over devices, and works on the results.

    `halves`: it is for four partitions, which do nothing but keep halves of the results.
    """
    program = _Program(draw, *((1, 4) if halves else draw(st.sampled_from(_GRIDS))))
    parts = (
        *(program.combine, program.combine, program.combine_parts, program.fold),
        *(program.keep_part, program.several),
    )
    for part in draw(st.lists(st.sampled_from(parts), min_size=1, max_size=4)):
        if halves:
            program.keep_part(4)
        else:
            part()
    return program.text()
