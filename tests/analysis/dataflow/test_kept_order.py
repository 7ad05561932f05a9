"""The order of computations in the compiler that printed a module, told from its text."""

from __future__ import annotations

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.dataflow.kept_order import kept_order
from hloopt.text import parse_module

FUSED = "{name} {{ x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }}\n"


def module_text(names: list[str], fusions: dict[str, str]) -> str:
    """Branches with these names, printed and called in that order; some call a fusion."""
    text = "HloModule m, is_scheduled=true\n"
    for name in names:
        fused = fusions.get(name)
        body = "ROOT r = f32[4] sine(p)"
        if fused is not None:
            text += FUSED.format(name=f"body_of_{fused}")
            body = f"ROOT {fused} = f32[4] fusion(p), kind=kLoop, calls=body_of_{fused}"
        text += f"{name} {{ p = f32[4] parameter(0) {body} }}\n"
    given = ", ".join("a" for _ in names)
    branches = ", ".join(names)
    return text + (
        f"ENTRY e {{ n = s32[] parameter(0) a = f32[4] parameter(1) ROOT c = f32[4] "
        f"conditional(n, {given}), branch_computations={{{branches}}} }}\n"
    )


def order(names: list[str], **fusions: str) -> list[str]:
    text = module_text(names, {name.replace("_", "."): made for name, made in fusions.items()})
    return [computation.name for computation in kept_order(parse_module(text))]


def test_without_calls_names_tell_the_age() -> None:
    names = ["f.3.clone", "f.2", "f.10", "f.1.clone.clone"]
    assert order(names) == ["f.2", "f.10", "f.3.clone", "f.1.clone.clone", "e"]


def test_who_calls_a_fusion_moves_back() -> None:
    assert order(["f.1", "f.2", "f.3"], f_1="loop_fusion") == ["f.2", "f.3", "f.1", "e"]
    both = order(["f.1", "f.2", "f.3"], f_1="loop_fusion", f_2="fusion")
    assert both == ["f.3", "f.1", "f.2", "e"]


def test_fusions_of_one_instruction_are_made_last() -> None:
    made = order(["f.1", "f.2", "f.3"], f_1="wrapped_negate", f_2="loop_fusion")
    assert made == ["f.3", "f.2", "f.1", "e"]


def test_callers_move_back_with_their_callees() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
fused { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }
inner.1 { p = f32[4] parameter(0) ROOT w = f32[4] fusion(p), kind=kLoop, calls=fused }
outer.2 { p = f32[4] parameter(0) ROOT c = f32[4] call(p), to_apply=inner.1 }
other.3 { p = f32[4] parameter(0) ROOT s = f32[4] sine(p) }
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] call(a), to_apply=outer.2
  ROOT c = f32[4] call(b), to_apply=other.3
}
""")
    assert [c.name for c in kept_order(module)] == ["inner.1", "other.3", "outer.2", "e"]


def test_conditions_of_loops_are_older_than_bodies_of_the_same_number() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
while_body { p = (s32[]) parameter(0) ROOT r = (s32[]) opt-barrier(p) }
while_cond { p = (s32[]) parameter(0) ROOT r = pred[] constant(false) }
ENTRY e {
  a = (s32[]) parameter(0)
  ROOT w = (s32[]) while(a), condition=while_cond, body=while_body
}
""")
    assert [c.name for c in kept_order(module)] == ["while_cond", "while_body", "e"]


def test_reducers_and_bodies_of_fusions_are_left_out() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }
ENTRY e {
  a = f32[4] parameter(0)
  c = f32[] constant(0)
  ROOT r = f32[] reduce(a, c), dimensions={0}, to_apply=add
}
""")
    assert [c.name for c in kept_order(module)] == ["e"]


def test_values_are_numbered_in_that_order() -> None:
    module = parse_module(module_text(["f.1", "f.2"], {"f.1": "loop_fusion"}))
    numbers = []
    for before_printing in (False, True):
        flow = Dataflow.of(module, before_printing=before_printing)
        numbers.append({flow.definer[v].name: flow.numbers[v] for v in flow.values()})
    as_read, as_kept = numbers
    assert as_read["loop_fusion"] < as_read["r"]
    assert as_kept["loop_fusion"] > as_kept["r"]
