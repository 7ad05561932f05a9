"""A Hypothesis strategy for programs over few element types, with operations of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from hloopt.ir.shapes.element_type import ELEMENT_TYPES

_UNARY = ("negate", "copy")
_UNARY_OF_KIND = {
    "float": ("abs", "sign", "exponential", "tanh", "floor", "sqrt", "round-nearest-even"),
    "signed": ("abs", "sign", "not", "count-leading-zeros"),
    "unsigned": ("not", "count-leading-zeros", "popcnt"),
}
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "remainder")
_BINARY_INTEGER = ("and", "or", "xor", "shift-left", "shift-right-logical")
_REDUCTIONS = ("add", "maximum", "multiply")


class _Program:
    """A program while it is drawn; its values are vectors of 8 numbers, by their type."""

    def __init__(self, draw: st.DrawFn, types: Sequence[str], *, mixed: bool) -> None:
        self.draw = draw
        self.types = types
        self.mixed = mixed
        self.lines: list[str] = []
        self.names = 0
        self.callees: dict[str, str] = {}
        self.values = {name: [f"x.{name}", f"y.{name}"] for name in types}

    def choose(self, choices: Sequence[str]) -> str:
        return self.draw(st.sampled_from(choices))

    def type(self) -> str:
        """One of the types, the first of them most often."""
        return self.choose((self.types[0], self.types[0], *self.types))

    def value(self, type_name: str) -> str:
        return self.choose(self.values[type_name])

    def add(self, shape: str, rest: str) -> str:
        self.names += 1
        self.lines.append(f"  v{self.names} = {shape} {rest}")
        return f"v{self.names}"

    def keep(self, type_name: str, rest: str) -> None:
        self.values[type_name].append(self.add(f"{type_name}[8]", rest))

    def spread(self, type_name: str, scalar: str) -> None:
        self.keep(type_name, f"broadcast({scalar}), dimensions={{}}")

    def scalar(self, type_name: str) -> str:
        values = ("1", "2") if type_name == "f8e8m0fnu" else ("0", "1")  # which has no zero
        return self.add(f"{type_name}[]", f"constant({self.choose(values)})")

    def index(self) -> str:
        return self.add("s32[]", f"constant({self.choose(('0', '2'))})")

    def callee(self, name: str, text: str) -> str:
        """A computation; the same one for the same name."""
        self.callees[name] = text
        return name

    def reduction(self, type_name: str) -> str:
        opcode = self.choose(_REDUCTIONS)
        t = f"{type_name}[]"
        return self.callee(
            f"{opcode}.{type_name}",
            f"a = {t} parameter(0) b = {t} parameter(1) ROOT c = {t} {opcode}(a, b)",
        )

    # -- steps --------------------------------------------------------------------------------

    def unary(self) -> None:
        t = self.type()
        more = _UNARY_OF_KIND[ELEMENT_TYPES[t].kind]
        self.keep(t, f"{self.choose((*_UNARY, *more))}({self.value(t)})")

    def binary(self) -> None:
        t = self.type()
        more = () if ELEMENT_TYPES[t].is_floating else _BINARY_INTEGER
        other = self.choose([u for u in self.types if u == t or (self.mixed and _are_floats(t, u))])
        opcode = self.choose((*_BINARY, *more))
        self.keep(t, f"{opcode}({self.value(t)}, {self.value(other)})")

    def compared(self) -> None:
        t = self.type()
        u = self.type()
        less = self.add("pred[8]", f"compare({self.value(t)}, {self.value(t)}), direction=LT")
        self.keep(u, f"select({less}, {self.value(u)}, {self.value(u)})")

    def clamp(self) -> None:
        t = self.type()
        self.keep(t, f"clamp({self.value(t)}, {self.value(t)}, {self.value(t)})")

    def convert(self) -> None:
        t = self.type()
        self.keep(self.type(), f"convert({self.value(t)})")

    def new(self) -> None:
        t = self.type()
        if self.draw(st.booleans()):
            self.keep(t, "iota(), iota_dimension=0")
        else:
            self.spread(t, self.scalar(t))

    def rearranged(self) -> None:
        t = self.type()
        m = self.add(f"{t}[4,2]", f"reshape({self.value(t)})")
        m = self.add(f"{t}[2,4]", f"transpose({m}), dimensions={{1,0}}")
        m = self.add(f"{t}[2,4]", f"reverse({m}), dimensions={{0}}")
        self.keep(t, f"reshape({m})")

    def cut(self) -> None:
        t = self.type()
        part = self.add(f"{t}[4]", f"slice({self.value(t)}), slice={{[2:6]}}")
        match self.choose(("pad", "concatenate", "update", "dynamic")):
            case "pad":
                self.keep(t, f"pad({part}, {self.scalar(t)}), padding=2_2")
            case "concatenate":
                self.keep(t, f"concatenate({part}, {part}), dimensions={{0}}")
            case "update":
                start = self.index()
                self.keep(t, f"dynamic-update-slice({self.value(t)}, {part}, {start})")
            case _:
                sizes = "dynamic_slice_sizes={4}"
                part = self.add(
                    f"{t}[4]", f"dynamic-slice({self.value(t)}, {self.index()}), {sizes}"
                )
                self.keep(t, f"concatenate({part}, {part}), dimensions={{0}}")

    def dot(self) -> None:
        t = self.type()
        self.spread(
            t,
            self.add(
                f"{t}[]",
                f"dot({self.value(t)}, {self.value(t)}), "
                "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            ),
        )

    def reduce(self) -> None:
        t = self.type()
        called = f"dimensions={{0}}, to_apply={self.reduction(t)}"
        self.spread(t, self.add(f"{t}[]", f"reduce({self.value(t)}, {self.scalar(t)}), {called}"))

    def reduce_two(self) -> None:
        t = self.type()
        u = self.choose([u for u in self.types if u == t or self.mixed or not _are_floats(t, u)])
        (a, b), pair = (f"{t}[]", f"{u}[]"), f"({t}[], {u}[])"
        step = self.callee(
            f"both.{t}.{u}",
            f"a = {a} parameter(0) b = {b} parameter(1) x = {a} parameter(2) y = {b} parameter(3) "
            f"g = pred[] compare(a, x), direction=GE c = {a} select(g, a, x) "
            f"d = {b} select(g, b, y) ROOT r = {pair} tuple(c, d)",
        )
        operands = f"{self.value(t)}, {self.value(u)}, {self.scalar(t)}, {self.scalar(u)}"
        found = self.add(pair, f"reduce({operands}), dimensions={{0}}, to_apply={step}")
        self.spread(t, self.add(a, f"get-tuple-element({found}), index=0"))
        self.spread(u, self.add(b, f"get-tuple-element({found}), index=1"))

    def window(self) -> None:
        t = self.type()
        called = f"window={{size=3 pad=1_1}}, to_apply={self.reduction(t)}"
        self.keep(t, f"reduce-window({self.value(t)}, {self.scalar(t)}), {called}")

    def select_and_scatter(self) -> None:
        t = self.type()
        a = f"{t}[]"
        chosen = self.callee(
            f"ge.{t}",
            f"a = {a} parameter(0) b = {a} parameter(1) "
            "ROOT c = pred[] compare(a, b), direction=GE",
        )
        part = self.add(f"{t}[4]", f"slice({self.value(t)}), slice={{[0:8:2]}}")
        called = f"select={chosen}, scatter={self.reduction(t)}"
        operands = f"{self.value(t)}, {part}, {self.scalar(t)}"
        self.keep(t, f"select-and-scatter({operands}), window={{size=2 stride=2}}, {called}")

    def sort(self) -> None:
        t, u = self.type(), self.type()
        a, b, is_one = f"{t}[]", f"{u}[]", self.draw(st.booleans())
        less = "pred[] compare(a, x), direction=LT"
        if is_one:
            called = self.callee(
                f"less.{t}", f"a = {a} parameter(0) x = {a} parameter(1) ROOT l = {less}"
            )
            self.keep(t, f"sort({self.value(t)}), dimensions={{0}}, to_apply={called}")
            return
        called = self.callee(
            f"less.{t}.{u}",
            f"a = {a} parameter(0) x = {a} parameter(1) b = {b} parameter(2) y = {b} parameter(3) "
            f"ROOT l = {less}",
        )
        self.pair(
            t, u, f"sort({self.value(t)}, {self.value(u)}), dimensions={{0}}, to_apply={called}"
        )

    def pair(self, t: str, u: str, rest: str) -> None:
        """Keep both elements of a tuple."""
        found = self.add(f"({t}[8], {u}[8])", rest)
        self.keep(t, f"get-tuple-element({found}), index=0")
        self.keep(u, f"get-tuple-element({found}), index=1")

    def moved(self) -> None:
        t, u = self.type(), self.type()
        self.names += 1
        channel = self.choose(("", f", channel_id={self.names}"))
        groups = f"replica_groups={{{{0,1}}}}{channel}"
        match self.choose(("reduce", "reduce both", "scatter", "gather", "permute", "exchange")):
            case "reduce":
                called = f"{groups}, to_apply={self.reduction(t)}"
                self.keep(t, f"all-reduce({self.value(t)}), {called}")
            case "reduce both":
                called = f"{groups}, to_apply={self.reduction(t)}"
                self.pair(t, u, f"all-reduce({self.value(t)}, {self.value(u)}), {called}")
            case "scatter":
                called = f"{groups}, dimensions={{0}}, to_apply={self.reduction(t)}"
                part = self.add(f"{t}[4]", f"reduce-scatter({self.value(t)}), {called}")
                self.keep(t, f"concatenate({part}, {part}), dimensions={{0}}")
            case "gather":
                whole = self.add(
                    f"{t}[16]", f"all-gather({self.value(t)}), {groups}, dimensions={{0}}"
                )
                self.keep(t, f"slice({whole}), slice={{[0:8]}}")
            case "permute":
                pairs = f"source_target_pairs={{{{0,1}},{{1,0}}}}{channel}"
                self.keep(t, f"collective-permute({self.value(t)}), {pairs}")
            case _:
                self.pair(t, t, f"all-to-all({self.value(t)}, {self.value(t)}), {groups}")

    def called(self) -> None:
        t = self.type()
        a, s = f"{t}[8]", f"{t}[]"
        match self.choose(("call", "fusion", "map", "while", "conditional")):
            case "call":
                body = f"p = {a} parameter(0) q = {a} negate(p) ROOT r = {a} add(p, q)"
                self.keep(t, f"call({self.value(t)}), to_apply={self.callee(f'plus.{t}', body)}")
            case "fusion":
                self.names += 1
                body = f"p = {a} parameter(0) q = {a} negate(p) ROOT r = {a} multiply(p, q)"
                fused = self.callee(f"fused.{self.names}", body)
                self.keep(t, f"fusion({self.value(t)}), kind=kLoop, calls={fused}")
            case "map":
                body = f"p = {s} parameter(0) q = {s} parameter(1) r = {s} add(p, q) "
                name = self.callee(f"each.{t}", body + f"ROOT u = {s} multiply(r, q)")
                operands = f"{self.value(t)}, {self.value(t)}"
                self.keep(t, f"map({operands}), dimensions={{0}}, to_apply={name}")
            case "conditional":
                one = self.callee(f"one.{t}", f"p = {a} parameter(0) ROOT q = {a} negate(p)")
                two = self.callee(f"two.{t}", f"ROOT p = {a} parameter(0)")
                self.keep(
                    t,
                    f"conditional({self.index()}, {self.value(t)}, {self.value(t)}), "
                    f"branch_computations={{{one}, {two}}}",
                )
            case _:
                self.loop(t)

    def loop(self, t: str) -> None:
        self.names += 1
        state = f"(s32[], {t}[8])"
        parts = (
            f"p = {state} parameter(0) i = s32[] get-tuple-element(p), index=0 "
            f"x = {t}[8] get-tuple-element(p), index=1 n = s32[] constant(2) "
        )
        body = self.callee(
            f"body.{self.names}",
            f"{parts} one = s32[] constant(1) j = s32[] add(i, one) y = {t}[8] add(x, x) "
            f"ROOT r = {state} tuple(j, y)",
        )
        condition = self.callee(
            f"condition.{self.names}", f"{parts} ROOT r = pred[] compare(i, n), direction=LT"
        )
        start = self.add(state, f"tuple({self.index()}, {self.value(t)})")
        end = self.add(state, f"while({start}), condition={condition}, body={body}")
        self.keep(t, f"get-tuple-element({end}), index=1")

    def wrapped(self) -> None:
        t, u = self.type(), self.type()
        found = self.add(f"({t}[8], {u}[8])", f"tuple({self.value(t)}, {self.value(u)})")
        self.pair(t, u, f"opt-barrier({found})")

    def looked_up(self) -> None:
        t = self.type()
        where = self.add("s32[4,1]", "constant({{0}, {3}, {1}, {7}})")
        if self.draw(st.booleans()):
            some = self.add(
                f"{t}[4]",
                f"gather({self.value(t)}, {where}), offset_dims={{}}, collapsed_slice_dims={{0}}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
            )
            self.keep(t, f"concatenate({some}, {some}), dimensions={{0}}")
        else:
            some = self.add(f"{t}[4]", f"slice({self.value(t)}), slice={{[4:8]}}")
            self.keep(
                t,
                f"scatter({self.value(t)}, {where}, {some}), update_window_dims={{}}, "
                "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
                f"to_apply={self.reduction(t)}",
            )

    def text(self) -> str:
        """The module: some of the values are its result."""
        found = [(t, name) for t, names in self.values.items() for name in names[2:]]
        kept = self.draw(st.lists(st.sampled_from(found), min_size=1, max_size=4))
        if len(kept) == 1 and self.draw(st.booleans()):
            root = self.add(f"{kept[0][0]}[8]", f"copy({kept[0][1]})")
        else:
            shape = ", ".join(f"{t}[8]" for t, _ in kept)
            root = self.add(f"({shape})", f"tuple({', '.join(name for _, name in kept)})")
        parameters = [
            f"  {name} = {t}[8] parameter({number})"
            for number, (t, name) in enumerate(
                (t, f"{side}.{t}") for t in self.types for side in "xy"
            )
        ]
        callees = [f"{name} {{ {text} }}" for name, text in self.callees.items()]
        lines = [*parameters, *self.lines]
        lines[-1] = lines[-1].replace(f"  {root} =", f"  ROOT {root} =")
        return "\n".join(
            ["HloModule m, replica_count=2", *callees, "ENTRY main {", *lines, "}", ""]
        )


def _are_floats(*types: str) -> bool:
    return all(ELEMENT_TYPES[name].is_floating for name in types)


@st.composite
def precision_texts(draw: st.DrawFn, types: Sequence[str], *, mixed: bool = False) -> str:
    """A module over these types, the first of them most often.

    With `mixed` operations take operands of different floating-point types.
    """
    program = _Program(draw, types, mixed=mixed)
    steps: Sequence[Callable[[], None]] = (
        *(program.unary, program.binary, program.binary, program.compared, program.clamp),
        *(program.convert, program.convert, program.new, program.rearranged, program.cut),
        *(program.dot, program.reduce, program.reduce_two, program.window, program.sort),
        *(program.select_and_scatter, program.moved, program.moved, program.called),
        *(program.called, program.wrapped, program.looked_up),
    )
    for step in draw(st.lists(st.sampled_from(steps), min_size=1, max_size=9)):
        step()
    return program.text()
