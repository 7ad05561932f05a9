"""Lines across computations: fusions, reducers, calls, branches and loops."""

from __future__ import annotations

from tests.analysis.source_lines.lines import LOOP, RELU, at, entry, line_of, named

from hloopt.analysis.source_lines import Basis

FUSED = f"""f {{
  q = f32[8] parameter(0)
  s = f32[8] sine(q), {at(5)}
  n = f32[8] negate(s), {at(6)}
  ROOT c = f32[8] copy(n)
}}
"""


def test_a_fusion_is_from_what_is_nearest_to_its_root() -> None:
    text = FUSED + entry("ROOT a = f32[8] fusion(p), kind=kLoop, calls=f")
    assert line_of(text, "a") == ("m.py:6", Basis.CALLEE)


def test_constants_do_not_tell_the_line_of_a_fusion() -> None:
    text = (
        f"f {{ q = f32[8] parameter(0)\n z = f32[] constant(0), {at(9)}\n "
        f"b = f32[8] broadcast(z), dimensions={{}}\n s = f32[8] sine(q), {at(5)}\n "
        "n = f32[8] abs(s)\n ROOT c = f32[8] add(b, n) }\n"
    ) + entry("ROOT a = f32[8] fusion(p), kind=kLoop, calls=f")
    assert line_of(text, "a") == ("m.py:5", Basis.CALLEE)


def test_the_metadata_of_a_fusion_comes_first() -> None:
    text = FUSED + entry(f"ROOT a = f32[8] fusion(p), kind=kLoop, calls=f, {at(1)}")
    assert line_of(text, "a") == ("m.py:1", Basis.METADATA)


def test_a_fusion_that_only_moves_is_from_its_operand() -> None:
    moving = "f { q = f32[8] parameter(0)\n ROOT c = f32[8] copy(q) }\n"
    text = moving + entry(
        f"a = f32[8] negate(p), {at(1)}",
        "b = f32[8] fusion(a), kind=kLoop, calls=f",
        f"ROOT d = f32[8] abs(b), {at(2)}",
    )
    assert line_of(text, "b") == ("m.py:1", Basis.OPERAND)
    computing = text.replace("copy(q)", "sine(q)")
    assert line_of(computing, "b") == ("m.py:2", Basis.USER)


def test_what_is_run_may_run_something_itself() -> None:
    text = FUSED + (
        "g { q.1 = f32[8] parameter(0)\n ROOT x = f32[8] fusion(q.1), kind=kLoop, calls=f }\n"
        + entry("ROOT a = f32[8] call(p), to_apply=g")
    )
    assert line_of(text, "a") == ("m.py:6", Basis.CALLEE)


def test_reducers_do_not_tell_the_line_of_a_reduce() -> None:
    # XLA shares them: the one that is left is from anywhere.
    text = (
        "r { x = f32[] parameter(0)\n y = f32[] parameter(1)\n "
        f"ROOT s = f32[] add(x, y), {at(9)} }}\n"
        + entry("z = f32[] constant(0)", "ROOT a = f32[] reduce(p, z), dimensions={0}, to_apply=r")
    )
    assert line_of(text, "a") == ("", Basis.NONE)


def test_functions_of_jax_are_at_the_line_that_calls_them() -> None:
    text = RELU + entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"ROOT c = f32[8] call(a), to_apply=relu, {at(2)}",
    )
    assert line_of(text, "m") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "b") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "z") == ("m.py:2", Basis.USER)
    assert line_of(text, "q") == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "k") == ("m.py:1", Basis.OPERAND)


def test_what_has_no_op_name_in_a_called_computation_is_from_users_before_the_caller() -> None:
    text = (
        f"g {{ q = f32[8] parameter(0)\n s = f32[8] sine(q)\n ROOT n = f32[8] abs(s), {at(5)} }}\n"
        + entry(
            f"a = f32[8] negate(p), {at(1)}",
            f"ROOT c = f32[8] call(a), to_apply=g, {at(2)}",
        )
    )
    assert line_of(text, "s") == ("m.py:5", Basis.USER)
    alone = text.replace(f", {at(5)}", "")
    assert line_of(alone, "s") == ("m.py:2", Basis.CALLER)


def test_parameters_are_what_is_passed_also_those_with_an_op_name() -> None:
    text = RELU.replace("q = f32[8] parameter(0)", f"q = f32[8] parameter(0), {named('x')}")
    text += entry(
        f"a = f32[8] negate(p), {at(1)}", f"ROOT c = f32[8] call(a), to_apply=relu, {at(2)}"
    )
    assert line_of(text, "q") == ("m.py:1", Basis.OPERAND)


def test_calls_pass_lines_on_through_calls() -> None:
    text = RELU + (
        "g { q.1 = f32[8] parameter(0)\n "
        f"ROOT x = f32[8] call(q.1), to_apply=relu, {named('jit(relu)')} }}\n"
        + entry(f"ROOT c = f32[8] call(p), to_apply=g, {at(2)}")
    )
    assert line_of(text, "x") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "m") == ("m.py:2", Basis.CALLER)


def test_branches_read_what_their_conditional_gives_them() -> None:
    text = (
        "t { x = f32[8] parameter(0)\n ROOT a = f32[8] copy(x) }\n"
        "f { y = f32[8] parameter(0)\n ROOT b = f32[8] copy(y) }\n"
        + entry(
            "c = pred[] constant(true)",
            f"u = f32[8] negate(p), {at(1)}",
            f"v = f32[8] abs(p), {at(2)}",
            "ROOT r = f32[8] conditional(c, u, v), true_computation=t, false_computation=f",
        )
    )
    assert line_of(text, "a") == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "b") == ("m.py:2", Basis.OPERAND)


def test_what_a_loop_changes_is_the_loops() -> None:
    assert line_of(LOOP, "x") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "k") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "s", (1,)) == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "x.1") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "state") == ("m.py:3", Basis.USER)
    assert line_of(LOOP, "l") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "s") == ("m.py:3", Basis.OPERAND)


def test_what_a_loop_keeps_is_what_it_begins_with() -> None:
    assert line_of(LOOP, "w") == ("(argument) w", Basis.ARGUMENT)
    assert line_of(LOOP, "s", (2,)) == ("(argument) w", Basis.ARGUMENT)
    assert line_of(LOOP, "v") == ("(argument) w", Basis.ARGUMENT)


def test_what_a_loop_swaps_is_not_kept() -> None:
    text = LOOP.replace("tuple(j, y, v)", "tuple(j, w, x)")
    assert line_of(text, "w") == ("m.py:3", Basis.OPERAND)
    assert line_of(text, "x") == ("m.py:3", Basis.OPERAND)


def test_elements_of_a_loops_result_are_the_loops() -> None:
    text = LOOP.replace("ROOT loop", "loop").removesuffix("\n}") + (
        "\n  ROOT out = f32[8] get-tuple-element(loop), index=1\n}"
    )
    assert line_of(text, "out") == ("m.py:3", Basis.OPERAND)
    assert line_of(text, "loop", (1,)) == ("m.py:3", Basis.METADATA)


def test_a_loop_without_a_line_is_from_its_body() -> None:
    text = LOOP.replace(f", {at(3)}", "")
    assert line_of(text, "loop") == ("m.py:5", Basis.CALLEE)
    assert line_of(text, "x") == ("m.py:5", Basis.OPERAND)
