"""Each condition of conditional-code-motion: what stays for it alone, and the remark."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.control_flow.moved_conditionals import (
    PASS,
    V,
    moved,
    program,
    remarks,
    remarks_without_running,
)

from hloopt.diagnostics import PipelineError
from hloopt.ir import Opcode
from hloopt.pass_framework.registry import create_pass

NOT_THE_SAME = "it is not the same in all branches"
COMMUNICATES = "it communicates, which not all devices may do in a branch"
OTHER = (
    "other { o.x = f32[] parameter(0) o.y = f32[] parameter(1) "
    "ROOT o.r = f32[] multiply(o.x, o.y) }"
)
ORDER = ", control-predecessors={z}"
NEGATED = f"ROOT u = {V} negate(h)"
ARRAY = f"ROOT r = {V} sine(a)", f"ROOT r = {V} cosine(b)"
"""Branches that give an array, and nothing alike."""


def stays(text: str, name: str, reason: str, **options: object) -> None:
    """Nothing moves, and the remark on an instruction gives the reason."""
    reasons_to_stay(PASS, text, **options)
    assert remarks(text, **options)[name] == reason


def opcodes(text: str, **options: object) -> set[Opcode]:
    """The opcodes of the entry after the pass, which changes it."""
    return {i.opcode for i in moved(text, **options).entry.instructions}


def ends(rest: str, *, order: str = "") -> tuple[str, str]:
    """The ends of two branches: `s` is not alike in them, `rest` is."""
    return (
        f"s = {V} sine(a) z = {V} abs(a) {rest}".replace("{p}", "a").replace(ORDER, order),
        f"s = {V} cosine(b) z = {V} abs(b) {rest}".replace("{p}", "b").replace(ORDER, order),
    )


# -- inside -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_true", "on_false"),
    [
        ("r = f32[4] negate(a)", "r = f32[4] floor(b)"),
        ("k = f32[4] constant({1,2,3,4}) r = f32[4] add(k, k)",
         "k = f32[4] constant({1,2,3,5}) r = f32[4] add(k, k)"),
        ("w = f32[8] concatenate(a, a), dimensions={0} r = f32[4] slice(w), slice={[0:4]}",
         "w = f32[8] concatenate(b, b), dimensions={0} r = f32[4] slice(w), slice={[2:6]}"),
        ("k = f32[] constant(0) w = f32[4,2] broadcast(a), dimensions={0} "
         "r = f32[4] reduce(w, k), dimensions={1}, to_apply=ad",
         "k = f32[] constant(0) w = f32[4,2] broadcast(b), dimensions={0} "
         "r = f32[4] reduce(w, k), dimensions={1}, to_apply=other"),
        ("w = f32[8] concatenate(a, a), dimensions={0} r = f32[4] slice(w), slice={[0:4]}",
         "w = f32[4] reverse(b), dimensions={0} r = f32[4] slice(w), slice={[0:4]}"),
    ],
    ids=("opcode", "constant", "attribute", "applied computation", "operand shape"),
)  # fmt: skip
def test_what_differs_between_the_branches_stays(on_true: str, on_false: str) -> None:
    text = program(on_true, on_false, more=OTHER)
    names = [name for name, reason in remarks(text).items() if reason == NOT_THE_SAME]
    assert names == ["k" if "constant({" in on_true else "r"]


def test_layouts_differ_only_where_they_count() -> None:
    m = "f32[4,4]"
    on_true, on_false = (
        f"w = {m}{layout} broadcast({p}), dimensions={{0}} k = {m}{layout} {o}(w) "
        f"n = {m}{layout} negate(k) r = {m}{{1,0}} copy(n)"
        for p, o, layout in (("a", "sine", "{1,0}"), ("b", "cosine", "{0,1}"))
    )
    text = program(on_true, on_false, "", "ROOT u = f32[4,4] reverse(h), dimensions={0}",
                   gives=f"{m}{{1,0}}")  # fmt: skip
    stays(text, "r", NOT_THE_SAME)
    assert opcodes(text, is_layout_sensitive=False) >= {Opcode.NEGATE, Opcode.COPY}


def test_what_has_several_users_stays_inside() -> None:
    text = program(*ends("n = f32[4] negate(s) o = f32[4] floor(n) r = f32[4] add(n, o)"))
    assert remarks(text)["n"] == "it has 2 users"
    assert Opcode.NEGATE not in opcodes(text)
    assert Opcode.NEGATE in opcodes(text.replace("add(n, o)", "add(o, o)"))


def test_a_convert_stays_beside_what_it_may_be_fused_with() -> None:
    def text(before: str) -> str:
        return program(*ends(f"n = {before} r = bf16[4] convert(n)"), "",
                       "ROOT u = bf16[4] reverse(h), dimensions={0}", gives="bf16[4]")  # fmt: skip

    negated = text("f32[4] negate(s)")
    found = remarks(negated, pursue_full_conditional_code_motion=False)
    assert found["r"] == "it may be fused with %n"
    reasons_to_stay(PASS, negated, pursue_full_conditional_code_motion=False)
    assert Opcode.CONVERT in opcodes(text("f32[4] reshape(s)"))


def test_what_reads_the_parameter_stays() -> None:
    text = program(
        "g = f32[4] get-tuple-element(a), index=0 r = f32[4] negate(g)",
        "i = f32[4] get-tuple-element(b), index=0 r = f32[4] negate(i)",
        "l = (f32[4]) tuple(x)",
        takes=f"({V})",
        arguments="l, l",
    )
    assert remarks(text)["g"] == "it belongs to the parameter %a"
    module = moved(text)
    assert {i.opcode for i in module["c"].called[0].instructions} == {Opcode.PARAMETER}


def test_a_tuple_of_the_parameter_stays() -> None:
    gives = f"({V}, {V})"
    text = program(
        *(f"s = {V} {o}({p}) n = {V} negate(s) ROOT g = {gives} tuple({p}, n)"
          for p, o in (("a", "sine"), ("b", "cosine"))),
        "", f"i = {V} get-tuple-element(h), index=1 ROOT u = {V} reverse(i), dimensions={{0}}",
        gives=gives,
    )  # fmt: skip
    stays(text, "g", "it belongs to the parameter %a")


@pytest.mark.parametrize(
    "operation", ["reverse(s), dimensions={0}", "transpose(s), dimensions={0}", "copy(s)"]
)
def test_only_some_opcodes_move(operation: str) -> None:
    opcode = operation.partition("(")[0]
    text = program(*ends(f"r = {V} {operation}"))
    if opcode == "copy":
        assert Opcode.COPY in opcodes(text)
    else:
        stays(text, "r", f"{opcode} is not worth moving")


@pytest.mark.parametrize(
    ("operation", "more", "moves"),
    [
        ("f32[4] map(s), dimensions={0}, to_apply=each",
         "each { m = f32[] parameter(0) ROOT e = f32[] negate(m) }", True),
        ("f32[4] fusion(s), kind=kLoop, calls=each",
         "each { m = f32[4] parameter(0) ROOT e = f32[4] negate(m) }", True),
        ("f32[4] fusion(s), kind=kLoop, calls=each",
         "each { m = f32[4] parameter(0) ROOT e = f32[4] reverse(m), dimensions={0} }", False),
        ("s32[4] bitcast-convert(s)", "", True),
        ("s16[4,2] bitcast-convert(s)", "", False),
    ],
)  # fmt: skip
def test_some_opcodes_are_elementwise_at_times(operation: str, more: str, moves: bool) -> None:
    gives = operation.partition(" ")[0]
    on_true, on_false = ends(f"r = {operation}")
    if "fusion" in operation:
        on_false, more = on_false.replace("calls=each", "calls=too"), f"{more} too {more[5:]}"
    text = program(on_true, on_false, "", f"ROOT u = {gives} reverse(h), dimensions={{0}}",
                   gives=gives, more=more)  # fmt: skip
    opcode = operation.split()[1].partition("(")[0]
    if not moves:
        stays(text, "r", f"{opcode} is not worth moving")
    else:
        assert opcode in opcodes(text)


def test_a_broadcast_moves_out_only_of_the_same_value() -> None:
    def text(first: str, second: str) -> str:
        return program(
            *(f"k = f32[] constant(1) l = f32[] {o} m = f32[4] broadcast(l), dimensions={{}} "
              f"r = f32[4] add(m, m)" for o in (first, second))
        )  # fmt: skip

    assert Opcode.BROADCAST in opcodes(text("negate(k)", "negate(k)"))
    found = remarks(text("negate(k)", "floor(k)"))
    assert found["m"] == "what it repeats is not the same in all branches"


def test_a_collective_moves_out_only_where_it_leaves_all_branches() -> None:
    groups = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=ad"
    on_true, on_false = (
        f"s = {V} {o}({p}) m = {V} all-reduce(s), channel_id={n}, {groups} "
        f"ROOT g = ({V}, {V}) tuple(m, {second})"
        for p, o, n, second in (("a", "sine", 1, "s"), ("b", "cosine", 2, "m"))
    )
    text = program(
        on_true, on_false, "", f"i = {V} get-tuple-element(h), index=0 "
        f"ROOT u = {V} reverse(i), dimensions={{0}}", gives=f"({V}, {V})",
        header=", num_partitions=2",
    )  # fmt: skip
    stays(text, "g", "%m.1 would run in its branch all the same")
    assert Opcode.ALL_REDUCE in opcodes(text.replace("tuple(m, m)", "tuple(m, s)"))


# -- behind and before the conditional --------------------------------------------------------


def test_a_user_of_something_else_stays_behind() -> None:
    text = program(*ends("r = f32[4] reverse(s), dimensions={0}"), "", "ROOT u = f32[4] add(h, y)")
    stays(text, "u", "not all of its 2 operands move")
    assert Opcode.ADD not in opcodes(text.replace("add(h, y)", "add(h, h)"))


def test_a_user_of_several_results_moves_once_all_of_them_do() -> None:
    gives = f"({V}, {V})"
    text = program(
        *(f"s = {V} {o}({p}) n = {V} reverse({p}), dimensions={{0}} ROOT g = {gives} tuple(n, s)"
          for p, o in (("a", "sine"), ("b", "cosine"))),
        "", f"i = {V} get-tuple-element(h), index=0 k = {V} floor(i) "
        f"j = {V} get-tuple-element(h), index=1 l = {V} negate(j) ROOT u = {V} add(k, l)",
        gives=gives,
    )  # fmt: skip
    assert Opcode.ADD not in opcodes(text)
    assert "u" not in remarks(text)
    assert remarks(text.replace("floor(i)", "reverse(i), dimensions={0}"))["u"] == (
        "not all of its 2 operands move"
    )


@pytest.mark.parametrize("channel", ["channel_id=1, ", ""])
def test_communication_does_not_move_into_a_branch(channel: str) -> None:
    reduced = f"all-reduce(h), {channel}replica_groups={{}}, to_apply=ad"
    behind = f"n = {V} {reduced} ROOT u = {V} reverse(n), dimensions={{0}}"
    text = program(*ends("r = f32[4] reverse(s), dimensions={0}"), "", behind)
    stays(text, "n", COMMUNICATES)


def test_communication_stays_before_the_conditional() -> None:
    text = program(*ARRAY, "n = f32[4] all-reduce(x), replica_groups={}, to_apply=ad",
                   arguments="n, y")  # fmt: skip
    stays(text, "n", COMMUNICATES)


def test_a_broadcast_does_not_move_in_from_behind() -> None:
    text = program(*ARRAY, "", "ROOT u = f32[4,2] broadcast(h), dimensions={0}")
    stays(text, "u", "it would make the result of the branches larger")


def test_the_result_of_the_computation_stays_a_tuple_there() -> None:
    text = program(*ARRAY, "", "n = f32[4] negate(h) ROOT u = (f32[4]) tuple(n)")
    stays(text, "u", "it is the result of %e")


@pytest.mark.parametrize("where", ["inside", "behind", "before"])
@pytest.mark.parametrize("order", [ORDER, ""])
def test_control_dependencies_keep_an_instruction(where: str, order: str) -> None:
    if where == "inside":
        name, text = "r", program(*ends(f"r = {V} negate(s){ORDER}", order=order))
    elif where == "behind":
        name, text = "u", program(*ARRAY, f"z = {V} abs(x)", NEGATED + order)
    else:
        before = f"z = {V} abs(x) n = {V} negate(x){order}"
        name, text = "n", program(*ARRAY, before, arguments="n, y")
    if order:
        stays(text, name, "it has control dependencies")
    else:
        moved(text)


@pytest.mark.parametrize(
    ("before", "name", "reason"),
    [
        ("l = (f32[4]) tuple(x) n = f32[4] get-tuple-element(l), index=0", "n",
         "it only reads a tuple"),
        ("n = f32[4] negate(x)", "n", None),
        ("n = f32[4] rng(k, l), distribution=rng_uniform", "n", "it has a side effect"),
    ],
)  # fmt: skip
def test_some_operands_stay(before: str, name: str, reason: str | None) -> None:
    limits = "k = f32[] constant(0) l = f32[] constant(1) " if "rng" in before else ""
    text = program(*ARRAY, limits + before, arguments="n, y")
    if reason is None:
        assert Opcode.NEGATE not in opcodes(text)
    else:
        reasons_to_stay(PASS, text)
        assert remarks_without_running(text)[name] == reason


def test_a_tuple_with_a_sharding_stays() -> None:
    text = program(
        "i = f32[4] get-tuple-element(a), index=0 ROOT r = f32[4] sine(i)",
        "j = f32[4] get-tuple-element(b), index=0 ROOT r = f32[4] cosine(j)",
        "k = f32[4] negate(x) n = (f32[4]) tuple(k), sharding={{replicated}} "
        "l = (f32[4]) tuple(y), sharding={{replicated}}",
        takes=f"({V})",
        arguments="n, l",
    )
    stays(text, "n", "it is a tuple with a sharding")
    assert Opcode.NEGATE not in opcodes(text.replace(", sharding={{replicated}}", ""))


def test_an_operand_with_several_users_stays_even_once_all_are_known() -> None:
    text = program(
        *ARRAY,
        "n = f32[4] negate(x) k = f32[4] floor(n) l = f32[4] abs(n)",
        arguments="k, l",
    )
    assert remarks(text)["n"] == "it has several users"
    assert opcodes(text) >= {Opcode.NEGATE}


def test_what_decides_which_branch_runs_stays() -> None:
    text = """HloModule m
    t { a = pred[] parameter(0) ROOT r = pred[] not(a) }
    f { b = pred[] parameter(0) ROOT r = pred[] constant(true) }
    ENTRY e {
      x = pred[] parameter(0)
      n = pred[] not(x)
      ROOT c = pred[] conditional(n, n, x), true_computation=t, false_computation=f
    }
    """
    stays(text, "n", "it decides which branch runs")
    assert Opcode.NOT not in opcodes(text.replace("conditional(n,", "conditional(x,"))


def test_a_broadcast_that_others_use_is_made_anew_in_a_branch() -> None:
    before = "m = f32[] constant(2) w = f32[4] broadcast(m), dimensions={}"
    text = program(*ARRAY, f"{before} n = f32[4] add(w, x) k = f32[4] negate(n)",
                   "k.2 = f32[4] add(h, w) ROOT u = f32[4] reverse(k.2), dimensions={0}",
                   arguments="k, y")  # fmt: skip
    module = moved(text)
    assert Opcode.BROADCAST in {i.opcode for i in module["h"].called[0].instructions}
    assert Opcode.BROADCAST in {i.opcode for i in module.entry.instructions}


# -- the whole --------------------------------------------------------------------------------


def test_what_has_no_benefit_stays() -> None:
    text = program(*ends("r = f32[4] add(s, z)"), "", "ROOT u = f32[4] add(h, y)")
    text = text.replace("z = f32[4]{0} abs(b)", "z = f32[4]{0} floor(b)")
    stays(text, "all", "moving it has no benefit")
    assert Opcode.ADD in opcodes(
        text.replace("u = f32[4] add(h, y)", "u = f32[4] reverse(h), dimensions={0}")
    )


@pytest.mark.parametrize(
    ("operand", "tells"),
    [
        ("slice(w), slice={[0:4]}", True),
        ("slice(w), slice={[0:4]}", False),
        ("reduce(m, z), dimensions={1}, to_apply=ad", False),
    ],
)
def test_what_takes_too_much_memory_stays(operand: str, tells: bool) -> None:
    told = "k = token[] after-all() o = token[] outfeed(a, k), outfeed_shape=f32[4]{0} "
    before = (
        "w = f32[1048576] iota(), iota_dimension=0 z = f32[] constant(0) "
        f"m = f32[4,262144] iota(), iota_dimension=1 n = f32[4] {operand}"
    )
    text = program((told if tells else "") + ARRAY[0], ARRAY[1], before, arguments="n, y")
    opcode = operand.partition("(")[0]
    if "reduce" in operand or tells:
        average = 4194304 // 2 if "reduce" in operand else 4194304
        reason = f"moving it takes {average} more bytes per operation, and 2048000 are allowed"
        reasons_to_stay(PASS, text, memory_increase_allowance=4000)
        assert remarks_without_running(text, memory_increase_allowance=4000)["n"] == reason
    enough = average // 512 if "reduce" in operand or tells else 0
    assert opcode not in opcodes(text, memory_increase_allowance=enough)


def test_one_direction_wins() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "", "ROOT u = f32[4] abs(h)")
    found = remarks(text)
    assert found["all"] == "moving other operations into the branches has as much benefit"
    assert Opcode.ABS not in opcodes(text)
    out = text.replace("abs(h)", "reverse(h), dimensions={0}")
    assert Opcode.NEGATE in opcodes(out)


# -- the conditional --------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["f32[4] add(n, h)", "(f32[4], f32[4]) tuple(n, h)"])
def test_an_array_with_several_users_keeps_them(last: str) -> None:
    text = program(*ARRAY, "", f"n = f32[4] negate(h) ROOT u = {last}")
    reason = "nothing moves in from behind it: it gives an array to 2 users"
    assert reason in reasons_to_stay(PASS, text)


def test_nothing_moves_into_what_gives_the_result_of_its_computation() -> None:
    text = program(*ARRAY, "", "n = f32[4] negate(h)").replace("  h = ", "  ROOT h = ")
    reason = "nothing moves in from behind it: its result is that of %e"
    assert reason in reasons_to_stay(PASS, text)


def test_a_whole_result_that_is_used_keeps_all() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "", "ROOT u = (f32[4], (f32[4])) tuple(h, c)")
    assert reasons_to_stay(PASS, text) == ["%u uses its whole result"]


def test_a_reader_with_control_dependencies_keeps_all() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "z = f32[4] abs(x)")
    assert Opcode.NEGATE in opcodes(text)
    text = text.replace("get-tuple-element(c), index=0", f"get-tuple-element(c), index=0{ORDER}")
    assert reasons_to_stay(PASS, text) == ["%h, which reads it, has control dependencies"]


def test_what_runs_asynchronously_stays() -> None:
    text = f"""HloModule m
    t {{ a = {V} parameter(0) s = {V} sine(a) r = {V} negate(s) ROOT g = ({V}) tuple(r) }}
    f {{ b = {V} parameter(0) s = {V} cosine(b) r = {V} negate(s) ROOT g = ({V}) tuple(r) }}
    run {{
      q = pred[] parameter(0)
      x = {V} parameter(1)
      ROOT c = ({V}) conditional(q, x, x), true_computation=t, false_computation=f
    }}
    ENTRY e {{
      q = pred[] parameter(0)
      x = {V} parameter(1)
      s = ((pred[], {V}), ({V}), s32[]) async-start(q, x), calls=run
      ROOT d = ({V}) async-done(s)
    }}
    """
    assert reasons_to_stay(PASS, text) == ["it runs asynchronously"]


# -- search configurations --------------------------------------------------------------------


def test_a_search_configuration_keeps_what_would_move() -> None:
    text = program(*ends("r = f32[4] negate(s)"))
    found = remarks(text, search_config="0,0,1,1")
    assert found["all"] == "the search configuration keeps tuple"
    assert remarks(text, search_config="0,1,1,1")["r"] == "the search configuration keeps negate"


def test_a_search_configuration_moves_no_side_effects() -> None:
    rest = (
        "k = token[] after-all() i = (f32[4], token[]) infeed(k) "
        "n = f32[4] get-tuple-element(i), index=0 r = f32[4] add(s, n)"
    )
    found = remarks_without_running(program(*ends(rest)), search_config="0,0,0,1")
    assert found["i"] == "it has a side effect, or another part"


@pytest.mark.parametrize("value", ["1,2,3", "a,b,c,d", "0,1,1,1;", "1.5"])
def test_a_search_configuration_has_a_form(value: str) -> None:
    with pytest.raises(PipelineError, match="is not a number, nor numbers index,start,max,stride"):
        create_pass(PASS, {"search_config": value})
