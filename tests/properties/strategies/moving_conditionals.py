"""Generated programs with conditionals that have work on both sides of their border."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

_V = "f32[4]"
_PAIR = f"({_V}, {_V})"
_NESTED = f"({_PAIR}, {_V})"
ADD = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


@dataclass
class _Scope:
    """A computation while it is written."""

    draw: st.DrawFn
    name: str
    values: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def add(self, shape: str, expression: str) -> str:
        """A new instruction; its name."""
        name = f"{self.name}.{len(self.lines)}"
        self.lines.append(f"{name} = {shape} {expression}")
        return name

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(1, 100)) <= percent

    def value(self) -> str:
        return self.pick(*self.values)

    def work(self, kind: str, operand: str) -> str:
        """One operation on a value; those of one kind are the same in all branches."""
        match kind:
            case "constant":
                two = self.add("f32[]", "constant(2)")
                wide = self.add(_V, f"broadcast({two}), dimensions={{}}")
                return self.add(_V, f"multiply({operand}, {wide})")
            case "reshape":
                column = self.add("f32[4,1]", f"reshape({operand})")
                return self.add(_V, f"reshape({column})")
            case "binary":
                return self.add(_V, f"add({operand}, {self.value()})")
            case "reduce":
                zero = self.add("f32[]", "constant(0)")
                total = self.add(
                    "f32[]", f"reduce({operand}, {zero}), dimensions={{0}}, to_apply=sum"
                )
                return self.add(_V, f"broadcast({total}), dimensions={{}}")
            case "narrow":
                narrow = self.add("bf16[4]", f"convert({operand})")
                return self.add(_V, f"convert({narrow})")
            case "all-reduce":
                return self.add(_V, f"all-reduce({operand}), replica_groups={{}}, to_apply=sum")
            case "reverse":
                return self.add(_V, f"reverse({operand}), dimensions={{0}}")
        return self.add(_V, f"{kind}({operand})")

    def text(self, head: str, shape: str, root: str) -> str:
        return (
            f"{head} {{\n  "
            + "\n  ".join([*self.lines, f"ROOT {self.name}.root = {shape} {root}"])
            + "\n}\n"
        )


_KINDS = ("constant", "reshape", "binary", "binary", "reduce", "narrow", "reverse", "copy", "floor")


def _argument(scope: _Scope, kind: str) -> str:
    def worked() -> str:
        value = scope.value()
        for _ in range(scope.draw(st.integers(0, 2))):
            value = scope.work(scope.pick(*_KINDS), value)
        if scope.chance(10):
            scope.values.append(value)
        return value

    if kind == _V:
        return worked()
    first = worked()
    pair = scope.add(_PAIR, f"tuple({first}, {first if scope.chance(30) else worked()})")
    return pair if kind == _PAIR else scope.add(_NESTED, f"tuple({pair}, {worked()})")


def _branch(draw: st.DrawFn, name: str, takes: str, tail: list[list[str]], is_array: bool) -> str:
    scope = _Scope(draw, name)
    argument = scope.add(takes, "parameter(0)")
    inner = argument
    if takes == _NESTED:
        inner = scope.add(_PAIR, f"get-tuple-element({argument}), index=0")
        scope.values.append(scope.add(_V, f"get-tuple-element({argument}), index=1"))
    if takes == _V:
        scope.values.append(argument)
    elif not scope.values or scope.chance(70):
        scope.values += [scope.add(_V, f"get-tuple-element({inner}), index={i}") for i in (0, 1)]
    for _ in range(draw(st.integers(0, 2))):
        scope.values.append(scope.work(scope.pick(*_KINDS), scope.value()))
    results: list[str] = []
    for steps in tail:
        value = results[-1] if results and scope.chance(15) else scope.value()
        for step in steps:
            value = scope.work(step, value)
        results.append(value)
    if is_array:
        return scope.text(name, _V, f"negate({results[0]})")
    shapes = [_V] * len(results)
    if takes == _NESTED:
        return scope.text(
            name, f"({', '.join([*shapes, _PAIR])})", f"tuple({', '.join([*results, inner])})"
        )
    return scope.text(name, f"({', '.join(shapes)})", f"tuple({', '.join(results)})")


@st.composite
def moving_conditionals(draw: st.DrawFn) -> str:
    """A program of one or two replicas with one to three conditionals."""
    replicas = draw(st.integers(1, 2))
    entry = _Scope(draw, "main")
    entry.values = [entry.add(_V, f"parameter({number})") for number in (0, 1)]
    flags = [entry.add("pred[]", "parameter(2)")]
    own = entry.add("u32[]", "replica-id()")
    zero = entry.add("u32[]", "constant(0)")
    flags.append(entry.add("pred[]", f"compare({own}, {zero}), direction=EQ"))
    computations = []
    for number in range(draw(st.integers(1, 3))):
        flag = entry.pick(*flags)
        kinds = [*_KINDS, *(["all-reduce"] * 2 if flag == flags[0] and replicas == 1 else [])]
        is_array = entry.chance(20)
        width = 1 if is_array else draw(st.integers(1, 3))
        tail = [draw(st.lists(st.sampled_from(kinds), max_size=3)) for _ in range(width)]
        takes = [entry.pick(_V, _PAIR, _NESTED)] * 2
        if takes[0] != _NESTED and entry.chance(40):
            takes[1] = entry.pick(_V, _PAIR)
        names = [f"t{number}", f"f{number}"]
        computations += [
            _branch(draw, name, taken, tail, is_array)
            for name, taken in zip(names, takes, strict=True)
        ]
        if takes[0] == takes[1] and entry.chance(15):
            names[1] = names[0]
        operands = [_argument(entry, taken) for taken in takes]
        if takes[0] == takes[1] and entry.chance(30):
            operands[1] = operands[0]
        whole = [_V] * width + [_PAIR] * (takes[0] == _NESTED)
        shape = _V if is_array else f"({', '.join(whole)})"
        result = entry.add(
            shape,
            f"conditional({flag}, {', '.join(operands)}), "
            f"true_computation={names[0]}, false_computation={names[1]}",
        )
        used = []
        for index in range(width):
            value = result
            if not is_array:
                value = entry.add(_V, f"get-tuple-element({result}), index={index}")
            for _ in range(draw(st.integers(0, 3))):
                value = entry.work(entry.pick(*_KINDS), value)
            used.append(value)
        if takes[0] == _NESTED and not is_array and entry.chance(60):
            pair = entry.add(_PAIR, f"get-tuple-element({result}), index={width}")
            used.append(entry.add(_V, f"get-tuple-element({pair}), index=1"))
        if len(used) > 1 and entry.chance(60):
            used = [entry.add(_V, f"add({used[0]}, {used[1]})"), *used[2:]]
        entry.values += used
    results = entry.values[-4:]
    text = entry.text(
        "ENTRY main", f"({', '.join([_V] * len(results))})", f"tuple({', '.join(results)})"
    )
    scheduled = draw(st.sampled_from(("", "", ", is_scheduled=true")))
    return f"HloModule m{scheduled}, replica_count={replicas}\n{ADD}{''.join(computations)}{text}"
