"""The allocations of a module, and what lies in them."""

from __future__ import annotations

from tests.memory.modules import LOOP_CONDITION, allocations, assign

from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import CPU, GPU, Backend, backend_of
from hloopt.text import parse_module


def test_parameters_constants_outputs_and_temporaries_are_apart() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "c = f32[] constant(2)",
            "b = f32[100] broadcast(c), dimensions={}",
            "r = f32[25] slice(b), slice={[0:25]}",
            "o = f32[25] reverse(r), dimensions={0}",
        )
    )
    assert found == [
        ("parameter", 400, ["a"]),
        ("output", 100, ["o"]),
        ("constant", 4, ["c"]),
        ("temporary", 500 + 48, ["b", "r"]),
    ]


def test_a_temporary_can_lie_where_the_output_will_be() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "b = f32[100] reverse(a), dimensions={0}",
            "c = f32[100] negate(b)",
        )
    )
    assert ("output", 400, ["b", "c"]) in found


def test_an_output_needs_an_allocation_of_its_very_size() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "b = f32[50] slice(a), slice={[0:50]}",
            "t = (f32[50]) tuple(b)",
            header="is_scheduled=true, input_output_alias={ }",
        )
    )
    assert ("output", 200, ["b"]) in found
    assert ("output", 8, ["t"]) in found


def test_temporaries_move_into_donated_parameters_and_into_no_others() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[100] reverse(a), dimensions={0}",
        "c = f32[50] slice(b), slice={[0:50]}",
        "d = f32[100] concatenate(c, c), dimensions={0}",
        "t = (f32[100]) tuple(d)",
    )
    donated = allocations(
        assign(*lines, header="is_scheduled=true, input_output_alias={ {0}: (0, {}) }")
    )
    assert ("parameter", 400, ["a", "d"]) in donated
    kept = allocations(assign(*lines))
    assert ("parameter", 400, ["a"]) in kept


def test_a_copy_never_lies_where_its_operand_does() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "b = f32[100] reverse(a), dimensions={0}",
            "c = f32[100] copy(b)",
        )
    )
    assert ("output", 400, ["c"]) in found


def test_tables_of_temporary_tuples_lie_one_behind_the_other() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "t = (f32[100], f32[100]) tuple(a, a)",
            "u = ((f32[100], f32[100])) tuple(t)",
            "v = (f32[100], f32[100]) get-tuple-element(u), index=0",
            "w = f32[100] get-tuple-element(v), index=0",
            "r = f32[100] negate(w)",
        )
    )
    temporary = next(entry for entry in found if entry[0] == "temporary")
    assert temporary == ("temporary", 64 + 8, ["t", "u"])


def test_reducers_have_thread_local_memory_and_fusions_none() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "z = f32[] constant(0)",
            "r = f32[] reduce(a, z), dimensions={0}, to_apply=add",
            "n = f32[] fusion(r), kind=kLoop, calls=f",
            before="""
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
f { p = f32[] parameter(0)
  ROOT q = f32[] negate(p) }""",
        )
    )
    assert sorted(e[2] for e in found if e[0] == "thread-local") == [["s"], ["x"], ["y"]]
    assert not any("q" in entry[2] for entry in found)


def test_the_body_of_a_fusion_has_no_thread_local_memory_if_a_reducer_calls_it_too() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "z = f32[] constant(0)",
            "r = f32[] reduce(a, z), dimensions={0}, to_apply=add",
            "n = f32[] fusion(r, z), kind=kLoop, calls=f",
            before="""
f { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = f32[] call(x, y), to_apply=f }""",
        )
    )
    assert sorted(e[2] for e in found if e[0] == "thread-local") == [["x"], ["y"]]


def test_memory_spaces_never_share() -> None:
    assignment = assign(
        "a = f32[100] parameter(0)",
        "h = f32[100]{0:S(5)} copy(a)",
        "b = f32[100] copy(h)",
        "c = f32[50] slice(b), slice={[0:50]}",
    )
    colors = {a.color: a.kind.value for a in assignment.allocations if a.kind == "temporary"}
    assert colors == {5: "temporary", 0: "temporary"}


def test_branches_of_a_conditional_use_the_same_temporary_memory() -> None:
    assignment = assign(
        "p = pred[] parameter(0)",
        "a = f32[100] parameter(1)",
        "c = f32[10] conditional(p, a, a), true_computation=f, false_computation=g",
        before="""
f { x = f32[100] parameter(0)
  r = f32[200] concatenate(x, x), dimensions={0}
  ROOT s = f32[10] slice(r), slice={[0:10]} }
g { y = f32[100] parameter(0)
  k = f32[200] concatenate(y, y), dimensions={0}
  ROOT l = f32[10] slice(k), slice={[0:10]} }""",
    )
    temporary = assignment.allocations[-1]
    assert temporary.size == 800
    assert list(temporary.offsets.values()) == [0, 0]


def test_a_loop_needs_memory_for_its_state_once() -> None:
    body = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  v = f32[100] sine(x)
  ROOT r = (s32[], f32[100]) tuple(next, v) }"""
    assignment = assign(
        "a = f32[100] parameter(0)",
        "z = s32[] parameter(1)",
        "i = s32[] copy(z)",
        "s = f32[100] copy(a)",
        "t = (s32[], f32[100]) tuple(i, s)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        before=LOOP_CONDITION + body,
    )
    found = allocations(assignment)
    assert ("output", 400, ["v", "s", "p.1?", "q.1?", "w.1?"]) in found
    assert found[-1] == ("temporary", 1, ["less"])


def test_alignment_is_that_of_the_backend() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[10] slice(a), slice={[0:10]}",
        "c = f32[20] concatenate(b, b), dimensions={0}",
        "r = f32[5] slice(c), slice={[0:5]}",
    )
    assert [assign(*lines, backend=b).allocations[-1].size for b in (CPU, GPU)] == [168, 296]


def test_the_backend_is_read_from_what_only_it_writes() -> None:
    text = "HloModule m, is_scheduled=true{}\nENTRY e {{ ROOT a = f32[] parameter(0){} }}\n"
    lhs = ', frontend_attributes={fingerprint_before_lhs="a"}'
    queue = ', backend_config={"operation_queue_id":"0"}'
    assert backend_of(parse_module(text.format("", ""))) is CPU
    assert backend_of(parse_module(text.format(lhs, ""))) is GPU
    assert backend_of(parse_module(text.format("", queue))) is GPU


def test_buffers_of_a_text_that_xla_gpu_printed_are_placed_as_before_it() -> None:
    body = """
cond.{n} {{ c.{n} = (f32[64]) parameter(0) ROOT no.{n} = pred[] constant(false) }}
body.{n} {{
  b.{n} = (f32[64]) parameter(0)
  x.{n} = f32[64] get-tuple-element(b.{n}), index=0
  t.{n} = f32[64] sine(x.{n})
  u.{n} = f32[64] add(t.{n}, x.{n})
  ROOT r.{n} = (f32[64]) tuple(u.{n})
}}
"""
    module = parse_module(f"""
HloModule m, is_scheduled=true
{body.format(n="a")}{body.format(n="b")}
ENTRY e {{
  p = f32[64] parameter(0)
  q = f32[64] copy(p)
  v = f32[64] copy(p)
  i = (f32[64]) tuple(q)
  j = (f32[64]) tuple(v)
  w = (f32[64]) while(j), condition=cond.b, body=body.b
  z = (f32[64]) while(i), condition=cond.a, body=body.a
  k = f32[64] get-tuple-element(w), index=0
  l = f32[64] get-tuple-element(z), index=0
  ROOT sum = f32[64] add(k, l)
}}
""")

    def temporaries(backend: Backend) -> list[str]:
        """The values of both bodies in the order in which they were placed."""
        assignment = BufferAssignment.of(module, backend=backend)
        definer = assignment.flow.definer
        values = [definer[v].name for a in assignment.allocations for v in a.offsets]
        return [name for name in values if name in ("t.a", "t.b")]

    assert temporaries(GPU) == ["t.b", "t.a"]
    assert temporaries(CPU) == ["t.a", "t.b"]
