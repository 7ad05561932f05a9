"""A Hypothesis strategy for modules over all opcodes and element types, made from `recipes`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from tests.properties.strategies.recipes import CALLEES, LITERALS, RECIPES, A

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_ANNOTATIONS = (
    'metadata={op_type="t" op_name="f/g" source_file="a.py" source_line=3}',
    'metadata={op_name="\\"quoted\\" \\303\\251" stack_frame_id=1}',
    "sharding={replicated}",
    "sharding={maximal device=1}",
    "sharding={devices=[2,2]<=[4] last_tile_dim_replicate}",
    "sharding={devices=[4]0,2,1,3}",
    'frontend_attributes={a="1",b.c="{}"}',
    'backend_config={"k":[1,{"b":"}"}]}',
    'origin={{"v" {0}}}',
)
_TABLES = """

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""
_LINE = re.compile(r"(\w+): (.*?) ([a-z0-9\-]+)\((.*)", re.S)
_SLOT = re.compile(r"<((?:[^<>]|<=)+)>")


class _Writer:
    """A module while it is drawn."""

    def __init__(self, draw: _Draw) -> None:
        self.draw = draw
        self.texts: list[str] = []
        self.callees: dict[str, str] = {}
        self.number = 0

    def fresh(self, base: str) -> str:
        self.number += 1
        return f"{base}.{self.number}"

    def callee(self, name: str, *, once: bool = False) -> str:
        """The name of a computation of this kind: an earlier one, or a new one."""
        if name in self.callees and not once and self.draw(st.booleans()):
            return self.callees[name]
        body = _Body(self, is_entry=False)
        if name == "body":
            body.add_recipe(f"x: {A} parameter(0)")
            for recipe in self.draw(st.lists(st.sampled_from(RECIPES[:60]), max_size=2)):
                body.add_recipe(recipe)
            body.add_recipe(f"x: {A} negate(<{A}>)")
        else:
            body.add_recipe(CALLEES[name])
        made = self.fresh(name)
        self.texts.append(body.text(made))
        if not once:
            self.callees[name] = made
        return made


class _Body:
    """One computation while it is drawn; its root is its last line."""

    def __init__(self, writer: _Writer, *, is_entry: bool) -> None:
        self.writer = writer
        self.draw = writer.draw
        self.is_entry = is_entry
        self.lines: list[tuple[str, str, str]] = []  # name, shape, the rest
        self.parameters = 0

    def choose(self, values: Sequence[str]) -> str:
        chosen: str = self.draw(st.sampled_from(values))
        return chosen

    def add(self, base: str, shape: str, rest: str) -> str:
        name = self.writer.fresh(base)
        self.lines.append((name, shape, rest))
        return name

    def value(self, shape: str) -> str:
        """An earlier value of a shape; made where there is none. Starts are for their dones."""
        found = [
            name
            for name, other, rest in self.lines
            if other == shape and not rest.partition("(")[0].endswith("-start")
        ]
        if found and self.draw(st.integers(0, 3)):
            return self.choose(found)
        if shape == "token[]":
            return self.add("token", shape, "after-all()")
        if self.is_entry and self.draw(st.booleans()):
            self.parameters += 1
            return self.add("p", shape, f"parameter({self.parameters - 1})")
        return self.add("made", shape, 'custom-call(), custom_call_target="make"')

    def add_recipe(self, recipe: str) -> None:
        labels: dict[str, str] = {}
        for text in recipe.split("\n"):
            line = _LINE.fullmatch(text)
            assert line, text
            label, shape, opcode, rest = line.groups()
            rest = _SLOT.sub(lambda slot: f"%{self.value(slot[1])}", rest)
            rest = re.sub(r"#(\w+)", lambda match: f"%{labels[match[1]]}", rest)
            rest = re.sub(
                r"([@!])(\w+)",
                lambda match: f"%{self.writer.callee(match[2], once=match[1] == '!')}",
                rest,
            )
            labels[label] = self.add(opcode, shape, f"{opcode}({rest}")

    def add_constant(self) -> None:
        """A constant of any element type and of few dimensions."""
        kind = self.choose(sorted(LITERALS))
        dimensions = self.draw(st.sampled_from([(), (1,), (3,), (2, 2), (2, 0), (1, 2, 2)]))
        literal = self._literal(kind, dimensions)
        layout = "{" + ",".join(map(str, range(len(dimensions) - 1, -1, -1))) + "}"
        shape = f"{kind}[{','.join(map(str, dimensions))}]{layout if dimensions else ''}"
        self.add("constant", shape, f"constant({literal})")

    def _literal(self, kind: str, dimensions: tuple[int, ...]) -> str:
        if not dimensions:
            return self.choose(LITERALS[kind])
        inner = [self._literal(kind, dimensions[1:]) for _ in range(dimensions[0])]
        return "{" + ", ".join(inner) + "}"

    def annotate(self) -> None:
        """Give a line an annotation, or a control predecessor."""
        at: int = self.draw(st.integers(0, len(self.lines) - 1))
        name, shape, rest = self.lines[at]
        if "_config" in rest or "frontend_attributes" in rest:
            return
        if at and self.draw(st.booleans()) and "-done(" not in rest:
            before = self.lines[self.draw(st.integers(0, at - 1))][0]
            note = f"control-predecessors={{%{before}}}"
        else:
            note = self.choose(_ANNOTATIONS)
            if note.startswith("sharding={devices") and shape != A:
                note = "sharding={manual}"
            if note.startswith("origin={{") and shape.startswith("("):
                note = "origin={[synthetic_call]}"  # a tuple would need one value per leaf
        if f" {note.partition('=')[0]}=" not in rest:
            self.lines[at] = (name, shape, f"{rest}, {note}")

    def text(self, name: str) -> str:
        last = len(self.lines) - 1
        lines = [
            f"  {'ROOT ' if at == last else ''}%{line} = {shape} {rest}"
            for at, (line, shape, rest) in enumerate(self.lines)
        ]
        return f"{'ENTRY ' if self.is_entry else ''}%{name} {{\n" + "\n".join(lines) + "\n}"


@st.composite
def modules_of_all_opcodes(draw: _Draw, recipes: Sequence[str] = RECIPES) -> str:
    """The text of a module that verifies, with instructions of some of `recipes`."""
    writer = _Writer(draw)
    body = _Body(writer, is_entry=True)
    for recipe in draw(st.lists(st.sampled_from(recipes), min_size=1, max_size=8)):
        body.add_recipe(recipe)
        if draw(st.booleans()):
            body.add_constant()
    for _ in range(draw(st.integers(0, 3))):
        body.annotate()
    writer.texts.append(body.text("main"))
    scheduled = ", is_scheduled=true" if draw(st.booleans()) else ""
    head = f"HloModule m{scheduled}, num_partitions=4"
    return (
        "\n\n".join((head + (_TABLES.rstrip() if draw(st.booleans()) else ""), *writer.texts))
        + "\n"
    )
