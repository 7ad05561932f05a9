"""Passes on loops keep what any loop computes, and find the trips that it makes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent

from hloopt.analysis.loops.annotation import known_trip_count
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

SCALAR, ARRAY = "s32[]", "s32[4]{0}"


@st.composite
def loop_texts(draw: st.DrawFn) -> str:
    """A loop of a few trips over scalars and arrays, which start and change in many ways."""
    shapes = [SCALAR, *draw(st.lists(st.sampled_from((SCALAR, ARRAY)), max_size=5))]
    state = f"({', '.join(shapes)})"
    starts = [draw(st.sampled_from(("0", "3")))]
    entry = [f"  k{n} = s32[] constant({n})" for n in range(4)]
    entry += ["  c0 = s32[4] constant({1,2,3,4})", "  c1 = s32[4] constant({0,0,0,7})"]
    for shape in shapes[1:]:
        choices = ("k0", "k2", "n") if shape == SCALAR else ("x", "c0", "c1")
        starts.append(draw(st.sampled_from(choices)))
    starts[0] = f"k{starts[0]}"
    body = [f"  g{i} = {shape} get-tuple-element(p), index={i}" for i, shape in enumerate(shapes)]
    body += ["  one = s32[] constant(1)", "  two = s32[] constant(-2)"]
    body += ["  c = s32[4] constant({1,2,3,4})", "  part = s32[1] constant({5})"]
    body += [f"  n0 = s32[] add(g0, {draw(st.sampled_from(('one', 'one', 'two')))})"]
    for i, shape in enumerate(shapes[1:], 1):
        other = draw(st.sampled_from([j for j, s in enumerate(shapes) if s == shape]))
        updates = [f"copy(g{i})", f"add(g{i}, g{other})", f"subtract(g{other}, g{i})"]
        if shape == SCALAR:
            updates += [f"add(g{i}, one)", f"add(two, g{i})", "constant(2)", f"multiply(g{i}, n0)"]
        else:
            updates += [f"dynamic-update-slice(g{i}, part, g0)", "constant({1,2,3,4})"]
        body.append(f"  n{i} = {shape} {draw(st.sampled_from(updates))}")
    following = ", ".join(
        f"{draw(st.sampled_from(('n', 'n', 'g')))}{i}" if i else "n0" for i in range(len(shapes))
    )
    limit = draw(st.integers(0, 6))
    is_tested_late = draw(st.booleans())
    extra = draw(st.sampled_from([i for i, shape in enumerate(shapes) if shape == SCALAR]))
    late = f"  m = s32[] multiply(t{extra}, zero)\n  u = s32[] add(t0, m)"
    direction = "LT" if "add(g0, one)" in "".join(body) else "GT"
    used = draw(st.lists(st.integers(0, len(shapes) - 1), min_size=1, max_size=4))
    reads = [f"  r{n} = {shapes[i]} get-tuple-element(w), index={i}" for n, i in enumerate(used)]
    result = ", ".join(f"r{n}" for n in range(len(used)))
    return "\n".join(
        [
            *("HloModule m", f"body {{\n  p = {state} parameter(0)", *body),
            f"  ROOT t = {state} tuple({following})\n}}",
            f"condition {{\n  q = {state} parameter(0)\n  zero = s32[] constant(0)",
            *(f"  t{i} = s32[] get-tuple-element(q), index={i}" for i in sorted({0, extra})),
            late if is_tested_late else "  u = s32[] copy(t0)",
            f"  limit = s32[] constant({limit})",
            f"  ROOT l = pred[] compare(u, limit), direction={direction}\n}}",
            "ENTRY e {\n  n = s32[] parameter(0)\n  x = s32[4] parameter(1)",
            *(*entry, f"  s = {state} tuple({', '.join(starts)})"),
            f"  w = {state} while(s), condition=condition, body=body",
            *(*reads, f"  ROOT r = ({', '.join(shapes[i] for i in used)}) tuple({result})\n}}"),
        ]
    )


def run(name: str, module: Module) -> bool:
    options = {"simplify_compare_instrs": True} if name == "simplify-while-loops" else {}
    before, version = print_module(module), module.version
    changed = create_pass(name, options).run(module, PassContext(name))
    assert changed == (module.version != version) == (print_module(module) != before)
    assert verify_module(module, ANY_TARGET) == []
    assert_consistent(module)
    return changed


@given(loop_texts(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_simplified_loops_compute_the_same_and_come_to_an_end(text: str, scheduled: bool) -> None:
    if scheduled:
        text = text.replace("HloModule m", "HloModule m, is_scheduled=true", 1)
    module = parse_module(text)
    assert verify_module(module, ANY_TARGET) == []
    reference = Reference(parse_module(text), RunSettings(seeds=2))
    for _ in range(12):
        if not run("simplify-while-loops", module):
            break
        assert reference.compare(module) is None
    else:
        raise AssertionError(f"still changing:\n{print_module(module)}")


@given(loop_texts())
@settings(max_examples=60, deadline=None)
def test_annotated_trip_counts_are_those_of_a_run(text: str) -> None:
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings(seeds=2))
    run("while-loop-trip-count-annotator", module)
    assert reference.compare(module) is None
    [loop] = module.instructions(Opcode.WHILE)
    known = known_trip_count(loop)
    if known is not None:
        limit = next(i for i in loop.called[1].instructions if i.name == "limit")
        step, first = (1, 0) if "add(g0, one)" in text else (-2, 0)
        start = 3 if "tuple(k3" in text else first
        distance = (int(limit.payload) - start) * (1 if step > 0 else -1)
        assert known == max(0, -(-distance // abs(step)))


def test_some_drawn_loops_are_simplified() -> None:
    """The generator is worth its name."""
    seen: set[str] = set()

    @given(loop_texts())
    @settings(max_examples=80, deadline=None, database=None)
    def collect(text: str) -> None:
        module = parse_module(text)
        context = PassContext()
        for _ in range(3):
            create_pass("simplify-while-loops").run(module, context)
        seen.update(context.statistics)

    collect()
    assert len(seen) >= 5
