"""A Hypothesis strategy for loops that reduce something over devices in each trip."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

_TYPES = ("f32", "bf16", "s32", "s8", "u16")
_STEPS = ("reshape", "transpose", "slice", "convert", "select", "scale", "broadcast", "negate")
_DEVICES = ((1, 1), (1, 2), (2, 1), (1, 4), (4, 1), (2, 2))


@dataclass
class _Loop:
    """A loop while it is drawn: the state is a counter, an input, and one sum or store each."""

    draw: st.DrawFn
    replicas: int
    partitions: int
    trips: int
    shapes: list[str] = field(default_factory=lambda: ["s32[]", "f32[4]"])
    body: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    reducers: set[str] = field(default_factory=set)
    names: int = 0

    def choose(self, *values: str) -> str:
        return self.draw(st.sampled_from(values))

    def add(self, shape: str, rest: str) -> str:
        self.names += 1
        self.body.append(f"  v{self.names} = {shape} {rest}")
        return f"v{self.names}"

    def reducer(self, operation: str, element: str) -> str:
        self.reducers.add(
            f"{operation}.{element} {{ a = {element}[] parameter(0) b = {element}[] parameter(1) "
            f"ROOT c = {element}[] {operation}(a, b) }}\n"
        )
        return f"{operation}.{element}"

    def participants(self) -> str:
        """Attributes for one of the modes of an all-reduce, with groups that fit."""
        self.names += 1
        channel = f", channel_id={self.names}"
        match self.choose("replicas", "all", "global"):
            case "replicas":
                return f"replica_groups={self.groups(self.replicas)}"
            case "all":
                return f"replica_groups={self.groups(self.replicas)}{channel}"
            case _:
                groups = self.groups(self.replicas * self.partitions)
                return f"replica_groups={groups}{channel}, use_global_device_ids=true"

    def groups(self, count: int) -> str:
        size = self.draw(st.sampled_from([n for n in (1, 2, 4) if n <= count]))
        numbers = self.draw(st.permutations(range(count)))
        cuts = [",".join(map(str, numbers[i : i + size])) for i in range(0, count, size)]
        return "{" + ",".join(f"{{{group}}}" for group in cuts) + "}"

    def local(self, element: str) -> str:
        """What a device has in a trip: different on all of them, and in all trips."""
        counter = self.add("f32[]", "convert(i)")
        spread = self.add("f32[4]", f"broadcast({counter}), dimensions={{}}")
        value = self.add("f32[4]", f"add(x, {spread})")
        return value if element == "f32" else self.add(f"{element}[4]", f"convert({value})")

    # -- sums ---------------------------------------------------------------------------------

    def accumulate(self) -> None:
        """An element of the state that all-reduces are added to, after up to three steps."""
        element, sizes = self.choose(*_TYPES), "4"
        operation = self.choose("add", "add", "add", "maximum")
        reducer = self.reducer(operation, element)
        local = self.local(element)
        value = self.add(
            f"{element}[4]", f"all-reduce({local}), {self.participants()}, to_apply={reducer}"
        )
        for step in self.draw(st.lists(st.sampled_from(_STEPS), max_size=3)):
            value, element, sizes = self.step(step, value, element, sizes)
        index = self.element(f"{element}[{sizes}]")
        state = f"g{index}"
        match self.choose("plain", "plain", "turned", "part", "read", "twice", "away and back"):
            case "turned" if sizes == "2,2":
                turned = self.add(f"{element}[2,2]", f"transpose({state}), dimensions={{1,0}}")
                total = self.add(f"{element}[2,2]", f"add({value}, {turned})")
                if self.draw(st.booleans()):
                    total = self.add(f"{element}[2,2]", f"transpose({total}), dimensions={{1,0}}")
            case "part" if sizes == "4":
                one = self.add("s32[]", "constant(1)")
                start = self.choose(one, "i", self.own_number())
                part = self.add(
                    f"{element}[2]", f"dynamic-slice({state}, {start}), dynamic_slice_sizes={{2}}"
                )
                half = self.add(f"{element}[2]", f"slice({value}), slice={{[1:3]}}")
                total = self.add(f"{element}[2]", f"add({part}, {half})")
                back = self.choose(start, start, one)
                total = self.add(f"{element}[4]", f"dynamic-update-slice({state}, {total}, {back})")
            case "read":
                total = self.add(f"{element}[{sizes}]", f"add({state}, {value})")
                total = self.add(f"{element}[{sizes}]", f"multiply({total}, {state})")
            case "twice":
                total = self.add(f"{element}[{sizes}]", f"add({state}, {value})")
                total = self.add(f"{element}[{sizes}]", f"add({total}, {value})")
            case "away and back" if sizes == "4":
                flat = self.add(f"{element}[2,2]", f"reshape({state})")
                square = self.add(f"{element}[2,2]", f"reshape({value})")
                total = self.add(f"{element}[2,2]", f"add({flat}, {square})")
                total = self.add(f"{element}[4]", f"reshape({total})")
            case _:
                total = self.add(f"{element}[{sizes}]", f"add({state}, {value})")
        self.results.append(total)
        if self.draw(st.integers(0, 5)) == 0:
            other = self.element(f"{element}[{sizes}]")
            self.results.append(self.add(f"{element}[{sizes}]", f"subtract({state}, g{other})"))

    def own_number(self) -> str:
        number = self.add("u32[]", self.choose("partition-id()", "replica-id()"))
        return self.add("s32[]", f"convert({number})")

    def step(self, step: str, value: str, element: str, sizes: str) -> tuple[str, str, str]:
        shape = f"{element}[{sizes}]"
        match step:
            case "reshape":
                sizes = "4" if sizes == "2,2" else "2,2" if sizes == "4" else sizes
                value = self.add(f"{element}[{sizes}]", f"reshape({value})")
            case "transpose" if sizes == "2,2":
                value = self.add(shape, f"transpose({value}), dimensions={{1,0}}")
            case "slice" if sizes == "4":
                sizes = "2"
                value = self.add(f"{element}[2]", f"slice({value}), slice={{[1:3]}}")
            case "broadcast" if sizes == "2":
                sizes = "2,2"
                value = self.add(f"{element}[2,2]", f"broadcast({value}), dimensions={{0}}")
            case "convert":
                element = self.choose(*_TYPES)
                value = self.add(f"{element}[{sizes}]", f"convert({value})")
            case "select":
                limit = self.add("s32[]", "constant(1)")
                number = self.choose("i", self.own_number())
                chosen = self.add("pred[]", f"compare({number}, {limit}), direction=LT")
                chosen = self.add(f"pred[{sizes}]", f"broadcast({chosen}), dimensions={{}}")
                zero = self.add(f"{element}[]", f"constant({self.choose('0', '0', '1')})")
                zero = self.add(shape, f"broadcast({zero}), dimensions={{}}")
                sides = self.choose(f"{value}, {zero}", f"{zero}, {value}")
                value = self.add(shape, f"select({chosen}, {sides})")
            case "scale":
                reducer = self.reducer("add", element)
                own = self.add("s32[]", f"add(i, {self.own_number()})")
                own = self.add(f"{element}[]", f"convert({own})")
                total = self.add(
                    f"{element}[]", f"all-reduce({own}), {self.participants()}, to_apply={reducer}"
                )
                spread = self.add(shape, f"broadcast({total}), dimensions={{}}")
                value = self.add(shape, f"multiply({value}, {spread})")
            case "negate":
                value = self.add(shape, f"negate({value})")
        return value, element, sizes

    # -- stores -------------------------------------------------------------------------------

    def store(self) -> None:
        """An element of the state that each trip stores a part of."""
        element, rows = self.choose(*_TYPES), max(self.trips, 3)
        operation = self.choose("add", "maximum", "multiply")
        reducer = self.reducer(operation, element)
        value = self.add(
            f"{element}[4]",
            f"all-reduce({self.local(element)}), {self.participants()}, to_apply={reducer}",
        )
        if self.draw(st.booleans()):
            element = self.choose(*_TYPES)
            value = self.add(f"{element}[4]", f"convert({value})")
        zero, one = self.add("s32[]", "constant(0)"), self.add("s32[]", "constant(1)")
        last = self.add("s32[]", f"constant({self.trips - 1})")
        back = self.add("s32[]", f"subtract({last}, i)")
        start = self.choose("i", "i", back, zero, one, self.own_number())
        form = self.choose("row", "column", "diagonal", "nested", "anew")
        if form in ("column", "diagonal"):
            index = self.element(f"{element}[{rows},{rows + 4}]")
            part = self.add(f"{element}[1]", f"slice({value}), slice={{[1:2]}}")
            value = self.add(f"{element}[1,1]", f"reshape({part})")
            other = "i" if form == "diagonal" else one
            shape = f"{element}[{rows},{rows + 4}]"
            stored = self.add(shape, f"dynamic-update-slice(g{index}, {value}, {start}, {other})")
        elif form == "nested":
            index = self.element(f"{element}[{rows},6]")
            base = self.add(f"{element}[]", "convert(i)")
            base = self.add(f"{element}[1,6]", f"broadcast({base}), dimensions={{}}")
            row = self.add(f"{element}[1,4]", f"reshape({value})")
            inner = self.add(
                f"{element}[1,6]", f"dynamic-update-slice({base}, {row}, {zero}, {one})"
            )
            stored = self.add(
                f"{element}[{rows},6]", f"dynamic-update-slice(g{index}, {inner}, {start}, {zero})"
            )
        elif form == "anew":
            index = self.element(f"{element}[{rows},4]")
            base = self.add(f"{element}[]", f"convert({one})")
            base = self.add(f"{element}[{rows},4]", f"broadcast({base}), dimensions={{}}")
            row = self.add(f"{element}[1,4]", f"reshape({value})")
            whole = self.add(
                f"{element}[{rows},4]", f"dynamic-update-slice({base}, {row}, {start}, {zero})"
            )
            stored = self.add(
                f"{element}[{rows},4]", f"dynamic-update-slice(g{index}, {whole}, {zero}, {zero})"
            )
        else:
            index = self.element(f"{element}[{rows},4]")
            row = self.add(f"{element}[1,4]", f"reshape({value})")
            stored = self.add(
                f"{element}[{rows},4]", f"dynamic-update-slice(g{index}, {row}, {start}, {zero})"
            )
        self.results.append(stored)

    def scatter(self) -> None:
        """A sum of reduce-scatters over all devices, as they are or where a scalar says so."""
        devices = self.replicas * self.partitions
        everyone = "{{" + ",".join(map(str, range(devices))) + "}}"
        reducer = self.reducer("add", "f32")
        self.names += 1
        sizes = 4 // devices
        value = self.add(
            f"f32[{sizes}]",
            f"reduce-scatter({self.local('f32')}), dimensions={{0}}, to_apply={reducer}, "
            f"replica_groups={everyone}, channel_id={self.names}, use_global_device_ids=true",
        )
        if self.draw(st.booleans()):
            value, _, _ = self.step("select", value, "f32", str(sizes))
        index = self.element(f"f32[{sizes}]")
        self.results.append(self.add(f"f32[{sizes}]", f"add(g{index}, {value})"))

    def scatter_into(self) -> None:
        """A sum that devices scatter into, as a partitioner writes it, or nearly so."""
        element = self.choose("f32", "f32", "bf16", "s32")
        index = self.element(f"{element}[4]")
        reducer = self.reducer("add", element)
        state = f"g{index}"
        if self.draw(st.integers(0, 4)):
            own, last = self.own_number(), self.add("s32[]", f"constant({self.choose('0', '1')})")
            first = self.add("pred[]", f"compare({own}, {last}), direction=EQ")
            chosen = self.add("pred[4]", f"broadcast({first}), dimensions={{}}")
            zero = self.add(f"{element}[]", "constant(0)")
            zero = self.add(f"{element}[4]", f"broadcast({zero}), dimensions={{}}")
            sides = self.choose(f"{state}, {zero}", f"{state}, {zero}", f"{zero}, {state}")
            state = self.add(f"{element}[4]", f"select({chosen}, {sides})")
        places = self.add("s32[3,1]", "constant({{0},{2},{2}})")
        updates = self.add(f"{element}[3]", f"slice({self.local(element)}), slice={{[1:4]}}")
        value = self.add(
            f"{element}[4]",
            f"scatter({state}, {places}, {updates}), update_window_dims={{}}, "
            "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
            f"to_apply={reducer}",
        )
        total = self.add(
            f"{element}[4]", f"all-reduce({value}), {self.participants()}, to_apply={reducer}"
        )
        self.results.append(total)

    # -- the whole ----------------------------------------------------------------------------

    def element(self, shape: str) -> int:
        """A new element of the state, which the body reads."""
        index = len(self.shapes)
        self.shapes.append(shape)
        self.body.append(f"  g{index} = {shape} get-tuple-element(p), index={index}")
        return index

    def text(self) -> str:
        state = f"({', '.join(self.shapes)})"
        sums = range(2, len(self.shapes))
        values = "".join(
            f"  b{n} = {self.shapes[n]} parameter({n - 1}), sharding={{replicated}}\n" for n in sums
        )
        starts = ", ".join(("zero", "x", *(f"b{n}" for n in sums)))
        loops = self.draw(st.sampled_from((1, 1, 2)))
        runs = "".join(
            f"  w{n} = {state} while(t), condition=condition, body=body\n" for n in range(loops)
        )
        result = ", ".join(f"w{n}" for n in range(loops))
        return (
            f"HloModule m, replica_count={self.replicas}, num_partitions={self.partitions}\n"
            + "".join(sorted(self.reducers))
            + f"body {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
            "  x = f32[4] get-tuple-element(p), index=1\n"
            + "\n".join(self.body)
            + "\n  one.b = s32[] constant(1)\n  next = s32[] add(i, one.b)\n"
            f"  ROOT r = {state} tuple({', '.join(('next', 'x', *self.results))})\n}}\n"
            f"condition {{\n  q = {state} parameter(0)\n"
            "  j = s32[] get-tuple-element(q), index=0\n"
            f"  n = s32[] constant({self.trips})\n"
            "  ROOT less = pred[] compare(j, n), direction=LT\n}\n"
            "ENTRY main {\n  zero = s32[] constant(0)\n  x.e = f32[4] parameter(0)\n"
            + values
            + f"  t = {state} tuple({starts.replace(' x,', ' x.e,', 1)})\n"
            + runs
            + f"  ROOT all = ({', '.join([state] * loops)}) tuple({result})\n}}\n"
        )


@st.composite
def reducing_loop_texts(draw: st.DrawFn, *, fewest_trips: int = 0, scatters: bool = True) -> str:
    """A module with a loop whose trips reduce over devices, and add up or store the results.

    `scatters`: some reduce what they scattered into the state.
    """
    replicas, partitions = draw(st.sampled_from(_DEVICES))
    loop = _Loop(draw, replicas, partitions, draw(st.integers(fewest_trips, 4)))
    parts = [loop.accumulate, loop.accumulate, loop.store, loop.scatter]
    if scatters:
        parts.append(loop.scatter_into)
    for part in draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3)):
        part()
    return loop.text()
