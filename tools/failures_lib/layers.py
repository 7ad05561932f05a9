"""Programs of many small layers, on eight devices, whose values stay between -1 and 1.

Layers are of five kinds in turn: attention with a gathered weight, a called perceptron, a loop over
stacked weights that stores what it computes, a branch, and a normalization. They run within
seconds, so that validation sees what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable

_HEAD = """HloModule layers, num_partitions=8{alias}

sum {{
  sum.a = f32[] parameter(0)
  sum.b = f32[] parameter(1)
  ROOT sum.r = f32[] add(sum.a, sum.b)
}}

largest {{
  largest.a = f32[] parameter(0)
  largest.b = f32[] parameter(1)
  ROOT largest.r = f32[] maximum(largest.a, largest.b)
}}
"""
_ALL = "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true"
_X = "f32[4,8]"
_STATE = "(s32[], f32[4,8], f32[3,4,8], f32[3,1,8])"


class _Layers:
    """The text of a program in the making."""

    def __init__(self) -> None:
        self.computations: list[str] = []
        self.lines: list[str] = []
        self.parameters = 0
        self.channels = 0
        self._count = 0

    def add(self, shape: str, rest: str, lines: list[str] | None = None) -> str:
        """A new instruction, of the entry unless `lines` are of another computation."""
        self._count += 1
        name = f"v{self._count}"
        (self.lines if lines is None else lines).append(f"{name} = {shape} {rest}")
        return name

    def parameter(self, shape: str) -> str:
        self.parameters += 1
        return self.add(shape, f"parameter({self.parameters - 1})")

    def channel(self) -> str:
        self.channels += 1
        return f"channel_id={self.channels}"

    def close(self, stem: str, lines: list[str], shape: str, root: str) -> str:
        """Write a computation; its name."""
        self._count += 1
        name = f"{stem}.{self._count}"
        body = "\n".join(f"  {line}" for line in lines)
        self.computations.append(f"{name} {{\n{body}\n  ROOT {name}.root = {shape} {root}\n}}\n")
        return name

    def weight(self, shard: str, lines: list[str] | None = None) -> str:
        """All rows of a weight of which each device has one."""
        rest = f"all-gather({shard}), dimensions={{0}}, {self.channel()}, {_ALL}"
        return self.add("f32[8,8]", rest, lines)

    def product(self, x: str, weight: str, lines: list[str] | None = None) -> str:
        contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        return self.add(_X, f"dot({x}, {weight}), {contracted}", lines)

    def full(self, value: str, lines: list[str] | None = None) -> str:
        scalar = self.add("f32[]", f"constant({value})", lines)
        return self.add(_X, f"broadcast({scalar}), dimensions={{}}", lines)


def _attention(program: _Layers, x: str) -> str:
    add = program.add
    scores = program.product(x, program.weight(program.parameter("f32[1,8]")))
    least, zero = add("f32[]", "constant(-inf)"), add("f32[]", "constant(0)")
    peak = add("f32[4]", f"reduce({scores}, {least}), dimensions={{1}}, to_apply=largest")
    peaks = add(_X, f"broadcast({peak}), dimensions={{0}}")
    powers = add(_X, f"exponential({add(_X, f'subtract({scores}, {peaks})')})")
    total = add("f32[4]", f"reduce({powers}, {zero}), dimensions={{1}}, to_apply=sum")
    shares = add(_X, f"divide({powers}, {add(_X, f'broadcast({total}), dimensions={{0}}')})")
    copy = add(_X, f"copy({shares})")
    mixed = add(_X, f"all-reduce({copy}), {program.channel()}, {_ALL}, to_apply=sum")
    scaled = add(_X, f"multiply({mixed}, {program.full('0.125')})")
    return add(_X, f"tanh({add(_X, f'subtract({x}, {scaled})')})")


def _perceptron(program: _Layers, x: str) -> str:
    lines: list[str] = []
    add = program.add
    value = add(_X, "parameter(0)", lines)
    weight = add("f32[8,8]", "parameter(1)", lines)
    hidden = program.product(value, weight, lines)
    gate = add(_X, f"maximum({hidden}, {program.full('0', lines)})", lines)
    name = program.close("perceptron", lines, _X, f"tanh({gate})")
    weight = program.weight(program.parameter("f32[1,8]"))
    half = add(_X, f"multiply({program.full('0.5')}, {x})")
    called = add(_X, f"call({x}, {weight}), to_apply={name}")
    again = add(_X, f"call({half}, {weight}), to_apply={name}")
    return add(_X, f"tanh({add(_X, f'subtract({called}, {again})')})")


def _loop(program: _Layers, x: str) -> str:
    add = program.add
    lines: list[str] = []
    state = add(_STATE, "parameter(0)", lines)
    kinds = ("s32[]", _X, "f32[3,4,8]", "f32[3,1,8]")
    counter, value, saved, stack = (
        add(shape, f"get-tuple-element({state}), index={index}", lines)
        for index, shape in enumerate(kinds)
    )
    zero, one = add("s32[]", "constant(0)", lines), add("s32[]", "constant(1)", lines)
    at = f"{counter}, {zero}, {zero}"
    left = add("s32[]", f"subtract({add('s32[]', 'constant(3)', lines)}, {counter})", lines)
    back = f"{add('s32[]', f'subtract({left}, {one})', lines)}, {zero}, {zero}"
    row = add("f32[1,1,8]", f"dynamic-slice({stack}, {back}), dynamic_slice_sizes={{1,1,8}}", lines)
    shard = add("f32[1,8]", f"reshape({row})", lines)
    product = program.product(value, program.weight(shard, lines), lines)
    following = add(_X, f"tanh({product})", lines)
    slab = add("f32[1,4,8]", f"reshape({following})", lines)
    stored = add("f32[3,4,8]", f"dynamic-update-slice({saved}, {slab}, {at})", lines)
    count = add("s32[]", f"add({counter}, {one})", lines)
    body = program.close("body", lines, _STATE, f"tuple({count}, {following}, {stored}, {stack})")
    test: list[str] = []
    state = add(_STATE, "parameter(0)", test)
    reached = add("s32[]", f"get-tuple-element({state}), index=0", test)
    end = add("s32[]", "constant(3)", test)
    condition = program.close(
        "condition", test, "pred[]", f"compare({reached}, {end}), direction=LT"
    )
    start, none = add("s32[]", "constant(0)"), add("f32[]", "constant(0)")
    empty = add("f32[3,4,8]", f"broadcast({none}), dimensions={{}}")
    weights = program.parameter("f32[3,1,8]")
    first = add(_STATE, f"tuple({start}, {x}, {empty}, {weights})")
    loop = add(_STATE, f"while({first}), condition={condition}, body={body}")
    last = add(_X, f"get-tuple-element({loop}), index=1")
    all_saved = add("f32[3,4,8]", f"get-tuple-element({loop}), index=2")
    total = add(_X, f"reduce({all_saved}, {none}), dimensions={{0}}, to_apply=sum")
    return add(_X, f"tanh({add(_X, f'add({total}, {last})')})")


def _branch(program: _Layers, x: str) -> str:
    add = program.add
    names = []
    for opcode in ("sine", "cosine"):
        lines: list[str] = []
        value = add(_X, "parameter(0)", lines)
        scaled = add(_X, f"multiply({value}, {program.full('0.75', lines)})", lines)
        names.append(program.close(opcode, lines, _X, f"{opcode}({scaled})"))
    which = program.parameter("pred[]")
    other = add("pred[]", f"not({which})")
    negated = add(_X, f"negate({x})")
    branches = f"true_computation={names[0]}, false_computation={names[1]}"
    return add(_X, f"conditional({other}, {x}, {negated}), {branches}")


def _normalization(program: _Layers, x: str) -> str:
    add = program.add
    zero = add("f32[]", "constant(0)")
    square = add(_X, f"multiply({x}, {x})")
    total = add("f32[4]", f"reduce({square}, {zero}), dimensions={{1}}, to_apply=sum")
    wide = add(_X, f"broadcast({total}), dimensions={{0}}")
    safe = add(_X, f"add({wide}, {program.full('0.001')})")
    scaled = add(_X, f"multiply({add(_X, f'rsqrt({safe})')}, {x})")
    exchanged = add("f32[8,4]", f"transpose({scaled}), dimensions={{1,0}}")
    back = add(_X, f"transpose({exchanged}), dimensions={{1,0}}")
    pair = add(f"({_X}, {_X})", f"tuple({back}, {x})")
    return add(_X, f"get-tuple-element({pair}), index=0")


_KINDS: tuple[Callable[[_Layers, str], str], ...] = (
    *(_attention, _perceptron, _loop, _branch, _normalization),
)


def layers(count: int, special: str = "", at: int = -1, *, before: str = "") -> Callable[[], str]:
    """A program of `count` layers; after layer `at` stand the lines of `special`.

    These take `{x}`, of f32[4,8], and give `{y}`; `before` has computations that they call.
    """
    return lambda: _written(count, special, at, before)


def _written(count: int, special: str, at: int, before: str) -> str:
    program = _Layers()
    first = x = program.parameter(_X)
    outputs = []
    for number in range(count):
        x = _KINDS[number % len(_KINDS)](program, x)
        if number == at % count:
            program.lines += special.format(x=x, y="special").splitlines()
            x = "special" if special else x
        if number % 7 == 0:
            outputs.append(x)
    outputs = list(dict.fromkeys([x, *outputs]))
    assert first not in outputs
    shape = f"({', '.join([_X] * len(outputs))})"
    lines = [*program.lines, f"ROOT outputs = {shape} tuple({', '.join(outputs)})"]
    entry = "ENTRY main {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"
    head = _HEAD.format(alias=", input_output_alias={ {0}: (0, {}, may-alias) }")
    return "\n".join([head, before, *program.computations, entry])
