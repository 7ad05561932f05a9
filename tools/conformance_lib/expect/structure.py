"""Expectations about the graph: opcodes, operands, users, computations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, compare_number, demand_some, expectation
from conformance_lib.forms import (
    BOOL,
    BOUND,
    INT,
    TEXT,
    keys,
    list_of,
    mapping,
    optional_list,
    row,
)
from conformance_lib.patterns import PATTERN, mismatch, show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, NAME, OPCODE, SELECTOR
from conformance_lib.selectors import (
    async_start,
    find_computation,
    find_scope,
    follow,
    has_opcode,
    select,
    select_one,
)
from hloopt.ir import Computation, Instruction, Opcode

# -- instructions -------------------------------------------------------------------------------


@expectation("root_opcode", OPCODE, **{"in": COMPUTATION})
def root_opcode(scene: Scene, opcode: str, more: More) -> Iterator[str]:
    root = find_computation(scene, more.get("in", "entry")).root
    if not has_opcode(root, opcode):
        yield f"expected a root {opcode}, found {show(root)}"


@expectation("root_pattern", PATTERN, same_instruction=list_of(TEXT), **{"in": COMPUTATION})
def root_pattern(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    root = find_computation(scene, more.get("in", "entry")).root
    yield from _check_pattern(scene, expected, root, more)


@expectation("pattern", PATTERN, at=SELECTOR, same_instruction=list_of(TEXT))
def pattern(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    for instruction in select(scene, _place(more)):
        yield from _check_pattern(scene, expected, instruction, more)


def _place(more: More) -> str:
    if "at" not in more:
        raise RecordError("a pattern without 'at'")
    place: str = more["at"]
    return place


@expectation("not_pattern", PATTERN, at=SELECTOR)
def not_pattern(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    for instruction in select(scene, _place(more)):
        if mismatch(scene, expected, instruction) is None:
            yield f"{show(instruction)} matches {expected}"


def _check_pattern(
    scene: Scene, expected: Any, instruction: Instruction, more: More
) -> Iterator[str]:
    reason = mismatch(scene, expected, instruction)
    if reason is not None:
        yield f"{show(instruction)} does not match {expected}: {reason}"
        return
    reached = [follow(instruction, path) for path in more.get("same_instruction", ())]
    if len(set(reached)) > 1:
        yield f"not one instruction: {', '.join(show(found) for found in reached)}"


@expectation("count", mapping(OPCODE, BOUND), **{"in": COMPUTATION})
def count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    scope = find_scope(scene, more.get("in"))
    for opcode, bound in expected.items():
        found = sum(has_opcode(i, opcode) for c in scope for i in c.instructions)
        yield from compare_number(f"number of {opcode}", found, bound)


@expectation("pattern_count", keys({"pattern": PATTERN, "n": BOUND}, {"in": COMPUTATION}))
def pattern_count(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    scope = find_scope(scene, expected.get("in"))
    wanted = expected["pattern"]
    found = sum(mismatch(scene, wanted, i) is None for c in scope for i in c.instructions)
    yield from compare_number(f"number of {wanted}", found, expected["n"])


@expectation("instruction_count", BOUND, **{"in": COMPUTATION})
def instruction_count(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    found = sum(len(computation) for computation in find_scope(scene, more.get("in")))
    yield from compare_number("number of instructions", found, expected)


@expectation("opcode_sequence", optional_list(OPCODE), **{"in": COMPUTATION})
def opcode_sequence(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    scope = find_scope(scene, more.get("in"))
    found = [i.opcode.value for computation in scope for i in computation.instructions]
    yield from compare("opcodes", found, expected)


@expectation("instr_present", list_of(NAME))
def instr_present(scene: Scene, names: list[str], more: More) -> Iterator[str]:
    for name in names:
        if not _has(scene, name):
            yield f"%{name} is not in the module"


@expectation("instr_absent", list_of(NAME))
def instr_absent(scene: Scene, names: list[str], more: More) -> Iterator[str]:
    for name in names:
        if _has(scene, name):
            yield f"%{name} is in the module"


def _has(scene: Scene, name: str) -> bool:
    computation, _, instruction = name.rpartition("::")
    if computation == "entry":
        computation = scene.module.entry.name
    return scene.has(instruction, computation or None)


@expectation("same_instruction_pairs", list_of(row(SELECTOR, SELECTOR)))
def same_instruction_pairs(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        a, b = select_one(scene, first), select_one(scene, second)
        if a is not b:
            yield f"{first} and {second} are two: {show(a)} and {show(b)}"


@expectation("different_instruction_pairs", list_of(row(SELECTOR, SELECTOR)))
def different_instruction_pairs(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        if select_one(scene, first) is select_one(scene, second):
            yield f"{first} and {second} are both {show(select_one(scene, first))}"


@expectation("operand_count", mapping(SELECTOR, BOUND))
def operand_count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for selector, bound in expected.items():
        for found in select(scene, selector):
            yield from compare_number(f"operands of {selector}", len(found.operands), bound)


@expectation("user_count", mapping(SELECTOR, BOUND))
def user_count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for selector, bound in expected.items():
        for found in select(scene, selector):
            yield from compare_number(f"users of {selector}", len(found.users), bound)


@expectation("control_predecessors", mapping(SELECTOR, optional_list(PATTERN)))
def control_predecessors(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, patterns in expected.items():
        for found in select(scene, selector):
            yield from _match_all(scene, selector, patterns, list(found.control_predecessors))


@expectation("control_successors", mapping(SELECTOR, optional_list(PATTERN)))
def control_successors(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, patterns in expected.items():
        for found in select(scene, selector):
            yield from _match_all(scene, selector, patterns, list(found.control_successors))


@expectation("has_control_dep", row(SELECTOR, SELECTOR))
def has_control_dep(scene: Scene, pair: list[str], more: More) -> Iterator[str]:
    first, second = (select_one(scene, selector) for selector in pair)
    if first not in second.control_predecessors:
        yield f"no control edge from {show(first)} to {show(second)}"


@expectation("control_edge_count", BOUND, **{"in": COMPUTATION})
def control_edge_count(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    scope = find_scope(scene, more.get("in"))
    found = sum(len(i.control_predecessors) for c in scope for i in c.instructions)
    yield from compare_number("number of control edges", found, expected)


def _match_all(
    scene: Scene, selector: str, patterns: list[Any], found: list[Instruction]
) -> Iterator[str]:
    """Mismatches unless each pattern has one instruction of its own, in any order."""
    left = list(found)
    for wanted in patterns:
        match = next((i for i in left if mismatch(scene, wanted, i) is None), None)
        if match is None:
            yield f"{selector}: no {wanted} among {[show(i) for i in found]}"
            return
        left.remove(match)
    if left:
        yield f"{selector}: not expected: {[show(i) for i in left]}"


# -- computations -------------------------------------------------------------------------------


@expectation("computations", BOUND)
def computations(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    names = ", ".join(scene.module.computations)
    number = len(scene.module.computations)
    yield from compare_number(f"number of computations ({names})", number, expected)


@expectation("computation_present", list_of(NAME))
def computation_present(scene: Scene, names: list[str], more: More) -> Iterator[str]:
    for name in names:
        if name not in scene.module.computations:
            yield f"computation %{name} is not in the module"


@expectation("computation_absent", list_of(NAME))
def computation_absent(scene: Scene, names: list[str], more: More) -> Iterator[str]:
    for name in names:
        if name in scene.module.computations:
            yield f"computation %{name} is in the module"


@expectation("exactly_one_computation_present", list_of(NAME))
def exactly_one_computation_present(scene: Scene, names: list[str], more: More) -> Iterator[str]:
    present = [name for name in names if name in scene.module.computations]
    if len(present) != 1:
        yield f"expected one of {', '.join(names)}, found {', '.join(present) or 'none'}"


@expectation("same_called_computation", list_of(row(SELECTOR, SELECTOR)))
def same_called_computation(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        a, b = _called(scene, first), _called(scene, second)
        demand_some(f"computation that {first} calls", a)
        if a != b:
            yield f"{first} calls {a}, {second} calls {b}"


@expectation("different_called_computation", list_of(row(SELECTOR, SELECTOR)))
def different_called_computation(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        demand_some(f"computation that {first} calls", _called(scene, first))
        demand_some(f"computation that {second} calls", _called(scene, second))
        if set(_called(scene, first)) & set(_called(scene, second)):
            yield f"{first} and {second} both call {_called(scene, first)}"


def _called(scene: Scene, selector: str) -> tuple[Computation, ...]:
    return async_start(select_one(scene, selector)).called


@expectation("called_computations_unique", list_of(SELECTOR))
def called_computations_unique(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for selector in expected:
        called = _called(scene, selector)
        demand_some(f"computation that {selector} calls", called)
        if len(set(called)) < len(called):
            yield f"{selector} calls a computation twice: {[c.name for c in called]}"


@expectation("called_count", mapping(SELECTOR, BOUND))
def called_count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for selector, bound in expected.items():
        for found in select(scene, selector):
            yield from compare_number(f"called by {selector}", len(found.called), bound)


@expectation("in_computation", mapping(SELECTOR, COMPUTATION))
def in_computation(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, name in expected.items():
        for found in select(scene, selector):
            wanted = find_computation(scene, name)
            yield from compare(f"home of {selector}", found.parent.name, wanted.name)


@expectation("fusion_computations", BOUND)
def fusion_computations(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    found = sum(c.is_fusion for c in scene.module.computations.values())
    yield from compare_number("bodies of fusions", found, expected)


@expectation("while_computations_unique", BOOL)
def while_computations_unique(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    called = [c for loop in scene.module.instructions(Opcode.WHILE) for c in loop.called]
    demand_some("while", called)
    yield from compare("no two whiles share", len(set(called)) == len(called), expected)


@expectation("caller_count", mapping(COMPUTATION, BOUND))
def caller_count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for name, bound in expected.items():
        references = sum(find_computation(scene, name).callers.values())
        yield from compare_number(f"references to %{name}", references, bound)


@expectation("max_callers", INT)
def max_callers(scene: Scene, expected: int, more: More) -> Iterator[str]:
    called = [c for c in scene.module.computations.values() if c.callers]
    demand_some("computation that is called", called)
    for computation in called:
        references = sum(computation.callers.values())
        yield from compare_number(f"references to %{computation.name}", references, f"<={expected}")
