"""A Hypothesis strategy for programs on several devices: values that some devices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from hypothesis import strategies as st

_Draw = Callable[[st.SearchStrategy[Any]], Any]
_T = TypeVar("_T")
_STATE = "(s32[], f32[], f32[])"
_SUM = "sum { sum.a = f32[] parameter(0) sum.b = f32[] parameter(1) "
_SUM += "ROOT sum.c = f32[] add(sum.a, sum.b) }\n"


@dataclass(slots=True)
class _Program:
    """A module while it is drawn."""

    draw: _Draw
    replicas: int
    partitions: int
    finished: list[str] = field(default_factory=list)
    """Computations that can be called."""
    names: int = 0

    def choose(self, values: Sequence[_T]) -> _T:
        chosen: _T = self.draw(st.sampled_from(values))
        return chosen

    def new_name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def groups(self, count: int) -> str:
        """The numbers below `count` in some order, in groups of any sizes."""
        numbers = self.draw(st.permutations(range(count)))
        cuts = [0, *sorted(self.draw(st.sets(st.integers(1, count)))), count]
        groups = [numbers[a:b] for a, b in pairwise(cuts) if a < b]
        return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


class _Body:
    """One computation while it is drawn; `scalars` are the values there are of type f32."""

    def __init__(self, program: _Program, depth: int) -> None:
        self.program = program
        self.depth = depth
        self.lines: list[str] = []
        self.scalars: list[str] = []

    def add(self, shape: str, rest: str) -> str:
        name = self.program.new_name()
        self.lines.append(f"  {name} = {shape} {rest}")
        return name

    def scalar(self) -> str:
        return self.program.choose(self.scalars)

    def number(self) -> str:
        """The device's own number on an axis, as s32."""
        opcode = self.program.choose(("replica-id", "partition-id"))
        return self.add("s32[]", f"convert({self.add('u32[]', f'{opcode}()')})")

    def fill(self, count: int) -> None:
        for _ in range(count):
            kinds = [self._arithmetic, self._arithmetic, self._own_number, self._table]
            kinds += [self._all_reduce, self._all_reduce]
            if self.depth:
                kinds += [self._loop, self._loop, self._branches, self._call]
            self.scalars.append(self.program.choose(kinds)())

    def _arithmetic(self) -> str:
        opcode = self.program.choose(("add", "multiply", "maximum"))
        return self.add("f32[]", f"{opcode}({self.scalar()}, {self.scalar()})")

    def _own_number(self) -> str:
        return self.add("f32[]", f"convert({self.number()})")

    def _table(self) -> str:
        opcode = self.program.choose(("replica-id", "partition-id"))
        entries = ",".join(self.program.choose("012") for _ in range(4))
        table = self.add("s32[4]", f"constant({{{entries}}})")
        index = self.add("u32[]", f"{opcode}()")
        row = self.add("s32[1]", f"dynamic-slice({table}, {index}), dynamic_slice_sizes={{1}}")
        return self.add("f32[]", f"convert({self.add('s32[]', f'reshape({row})')})")

    def _all_reduce(self) -> str:
        program = self.program
        of_replicas = f"replica_groups={program.groups(program.replicas)}"
        of_devices = f"replica_groups={program.groups(program.replicas * program.partitions)}"
        attributes = program.choose(
            (
                of_replicas,
                f"channel_id={program.names + 1}, {of_replicas}",
                f"channel_id={program.names + 1}, {of_devices}, use_global_device_ids=true",
            )
        )
        return self.add("f32[]", f"all-reduce({self.scalar()}), to_apply=sum, {attributes}")

    def _callee(self, parameter: str, elements: Sequence[str] = ()) -> _Body:
        body = _Body(self.program, self.depth - 1)
        name = body.add(parameter, "parameter(0)")
        body.scalars += [
            body.add("f32[]", f"get-tuple-element({name}), index={e}") for e in elements
        ] or [name]
        return body

    def _finish(self, body: _Body, root: str) -> str:
        name = self.program.new_name()
        body.lines[-1] = body.lines[-1].replace("  ", "  ROOT ", 1)
        assert root in body.lines[-1]
        self.program.finished.append(f"{name} {{\n" + "\n".join(body.lines) + "\n}\n")
        return name

    def _loop(self) -> str:
        body = self._callee(_STATE, "12")
        state = body.lines[0].split()[0]
        count = body.add("s32[]", f"get-tuple-element({state}), index=0")
        next_count = body.add("s32[]", f"add({count}, {body.add('s32[]', 'constant(1)')})")
        body.fill(2)
        result = body.add(_STATE, f"tuple({next_count}, {body.scalar()}, {body.scalar()})")
        body_name = self._finish(body, result)
        test = self._callee(_STATE, "1")
        state = test.lines[0].split()[0]
        count = test.add("s32[]", f"get-tuple-element({state}), index=0")
        bound = test.add("s32[]", f"constant({self.program.choose((1, 2, 3))})")
        result = test.add("pred[]", f"compare({count}, {bound}), direction=LT")
        test_name = self._finish(test, result)
        zero = self.add("s32[]", "constant(0)")
        start = self.program.choose((zero, self.number()))
        initial = self.add(_STATE, f"tuple({start}, {self.scalar()}, {self.scalar()})")
        loop = self.add(_STATE, f"while({initial}), condition={test_name}, body={body_name}")
        copied = self.add(_STATE, f"{self.program.choose(('copy', 'opt-barrier'))}({loop})")
        return self.add("f32[]", f"get-tuple-element({copied}), index=1")

    def _function(self) -> str:
        body = self._callee("f32[]")
        body.fill(2)
        return self._finish(body, body.add("f32[]", f"negate({body.scalar()})"))

    def _branches(self) -> str:
        pred = self.add("pred[]", f"compare({self.scalar()}, {self.scalar()}), direction=LT")
        operands = f"{pred}, {self.scalar()}, {self.scalar()}"
        one, other = self._function(), self._function()
        branches = f"true_computation={one}, false_computation={other}"
        return self.add("f32[]", f"conditional({operands}), {branches}")

    def _call(self) -> str:
        callee = self._function()
        first = self.add("f32[]", f"call({self.scalar()}), to_apply={callee}")
        if self.program.choose((True, False)):
            return first
        return self.add("f32[]", f"call({first}), to_apply={callee}")


@st.composite
def spmd_module_texts(draw: _Draw) -> str:
    """A module for 2 to 8 devices, with collectives in loops, branches and calls."""
    replicas, partitions = draw(st.sampled_from(((2, 1), (1, 4), (4, 1), (2, 2), (2, 4), (4, 2))))
    program = _Program(draw, replicas, partitions)
    body = _Body(program, 2)
    for number, annotation in enumerate(
        ("", ", sharding={replicated}", ", parameter_replication={true}")
    ):
        body.scalars.append(body.add("f32[]", f"parameter({number}){annotation}"))
    body.fill(draw(st.integers(2, 8)))
    body.add("(f32[], f32[])", f"tuple({body.scalars[-1]}, {body.scalar()})")
    body.lines[-1] = body.lines[-1].replace("  ", "  ROOT ", 1)
    header = f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n\n"
    entry = "ENTRY e {\n" + "\n".join(body.lines) + "\n}\n"
    return header + _SUM + "".join(program.finished) + entry
