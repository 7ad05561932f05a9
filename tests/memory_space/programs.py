"""Scheduled programs with loops and conditionals, one in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

Step = str | tuple["Step", ...] | list["Step"]
"""An opcode; a tuple: the body of a loop; a list of two tuples: a conditional with two branches."""
OPCODES = ("negate", "tanh", "abs")


def programs() -> st.SearchStrategy[list[Step]]:
    """The steps of programs."""
    steps: st.SearchStrategy[Step] = st.recursive(
        st.sampled_from(OPCODES),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4).map(tuple),
            st.tuples(
                st.lists(inner, max_size=3).map(tuple), st.lists(inner, max_size=3).map(tuple)
            ).map(list),
        ),
        max_leaves=12,
    )
    return st.lists(steps, min_size=1, max_size=8)


def program(steps: Sequence[Step]) -> Module:
    """The module that does these steps, one with the result of the other."""
    writer = _Writer()
    lines = ["p0 = f32[8] parameter(0)", "which = pred[] parameter(1)"]
    result = writer.chain(steps, "p0", lines)
    lines.append(f"ROOT last = f32[8] add({result}, p0)")
    text = ["HloModule m, is_scheduled=true", *writer.computations]
    return parse_module("\n".join([*text, "ENTRY e {", *lines, "}"]))


def named(module: Module, name: str) -> Instruction:
    """The instruction of a name that is in the module once."""
    (found,) = (each for each in module.instructions() if each.name == name)
    return found


@dataclass
class _Writer:
    computations: list[str] = field(default_factory=list)
    count: int = 0

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def chain(self, steps: Sequence[Step], value: str, lines: list[str]) -> str:
        for step in steps:
            name = self.new("v")
            if isinstance(step, str):
                lines.append(f"{name} = f32[8] {step}({value})")
            elif isinstance(step, tuple):
                condition, body = self.condition(), self.function(step, "body")
                callees = f"condition={condition}, body={body}"
                lines.append(f"{name} = f32[8] while({value}), {callees}")
            else:
                first, second = (self.function(branch, "branch") for branch in step)
                callees = f"true_computation={first}, false_computation={second}"
                predicate = self.new("t")
                lines.append(f"{predicate} = pred[] constant(true)")
                call = f"conditional({predicate}, {value}, {value})"
                lines.append(f"{name} = f32[8] {call}, {callees}")
            value = name
        return value

    def function(self, steps: Sequence[Step], prefix: str) -> str:
        name, parameter = self.new(prefix), self.new("p")
        lines = [f"{parameter} = f32[8] parameter(0)"]
        result = self.chain(steps, parameter, lines)
        lines.append(f"ROOT {self.new('r')} = f32[8] copy({result})")
        self.computations.append("\n".join([f"{name} {{", *lines, "}"]))
        return name

    def condition(self) -> str:
        name, parameter, root = self.new("cond"), self.new("p"), self.new("c")
        self.computations.append(
            f"{name} {{\n{parameter} = f32[8] parameter(0)\nROOT {root} = pred[] constant(true)\n}}"
        )
        return name
