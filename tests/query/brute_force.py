"""The facts selectors ask for, read from the lines of a printed module by other means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"  (ROOT )?%(\S+) = (.*?) ([a-z][a-z0-9-]*)\((.*)")
_CALLED = re.compile(
    r"\b(to_apply|calls|condition|body|select|scatter|true_computation|false_computation"
    r"|branch_computations|called_computations)=(\{[^}]*\}|%\S+?)(?=,|$|\s)"
)
_ARRAY = re.compile(r"\b([a-z][a-z0-9]*)\[([\d,<=?]*)\](\{[^}]*\})?")


@dataclass
class Line:
    """An instruction as its line says."""

    name: str
    shape: str
    opcode: str
    operands: list[str]
    attributes: str
    computation: str
    is_root: bool
    users: list[str] = field(default_factory=list)
    opcodes: set[str] = field(default_factory=set)

    @property
    def calls(self) -> dict[str, list[str]]:
        return {kind: re.findall(r"%([\w.\-]+)", text) for kind, text in self._called}

    @property
    def _called(self) -> list[tuple[str, str]]:
        return _CALLED.findall(self.attributes)

    @property
    def arrays(self) -> list[tuple[str, list[int], str]]:
        """Element type, sizes and layout of each array."""
        return [
            (kind, [int(size.lstrip("<=")) for size in sizes.split(",") if size], layout)
            for kind, sizes, layout in _ARRAY.findall(self.shape)
            if kind not in ("token", "opaque")
        ]

    @property
    def types(self) -> set[str]:
        found = {kind for kind, _, _ in _ARRAY.findall(self.shape)}
        return found | ({"tuple"} if self.shape.startswith("(") else set())

    @property
    def elements(self) -> int:
        return sum(_product(sizes) for _, sizes, _ in self.arrays)

    @property
    def bytes(self) -> int:
        return sum(_product(sizes) * _bytes(kind) for kind, sizes, _ in self.arrays)

    @property
    def op_name(self) -> str | None:
        found = re.search(r'metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"', self.attributes)
        return found and found[1].replace('\\"', '"').replace("\\303\\251", "\u00e9")


def _product(sizes: list[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _bytes(kind: str) -> int:
    return 1 if kind == "pred" else max(1, int(re.findall(r"\d+", kind)[0]) // 8)


class Lines:
    """The lines of a module that is printed without short forms of asynchronous operations."""

    def __init__(self, text: str) -> None:
        self.lines: list[Line] = []
        self.entry = ""
        computation = ""
        for written in text.splitlines():
            if written.endswith("{") and not written.startswith(" "):
                computation = written.removeprefix("ENTRY ").split()[0].removeprefix("%")
                self.entry = computation if written.startswith("ENTRY") else self.entry
            elif match := _LINE.fullmatch(written):
                self._add(match, computation)
        for line in self.lines:
            for operand in set(line.operands):
                self.named(operand).users.append(line.name)
            line.opcodes = self._opcodes(line)

    def _add(self, match: re.Match[str], computation: str) -> None:
        root, name, shape, opcode, rest = match.groups()
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        inside = rest[: end - 1]
        plain = opcode in ("parameter", "constant")
        operands = [] if plain else re.findall(r"%([\w.\-]+)", inside)
        attributes = rest[end:]
        self.lines.append(Line(name, shape, opcode, operands, attributes, computation, bool(root)))

    def named(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def _opcodes(self, line: Line) -> set[str]:
        start = line
        while start.opcode in ("async-update", "async-done"):
            start = self.named(start.operands[0])
        if start.opcode != "async-start":
            return {line.opcode}
        (wrapped,) = start.calls["calls"]
        inside = [each for each in self.lines if each.computation == wrapped]
        (root,) = (each for each in inside if each.is_root)
        alone = all(each is root or each.opcode == "parameter" for each in inside)
        kinds = {"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"}
        if not alone or root.opcode in kinds or root.opcode == "parameter":
            return {line.opcode}
        return {line.opcode, line.opcode.replace("async", root.opcode)}

    def within(self, *kinds: tuple[str, str]) -> set[str]:
        """The computations that instructions call by (opcode, attribute), and what these call."""
        found: set[str] = set()
        for line in self.lines:
            for kind, names in line.calls.items():
                if (line.opcode, kind) in kinds:
                    for name in names:
                        self._reach(name, found)
        return found

    def _reach(self, computation: str, found: set[str]) -> None:
        if computation in found:
            return
        found.add(computation)
        for line in self.lines:
            if line.computation == computation:
                for names in line.calls.values():
                    for name in names:
                        self._reach(name, found)
