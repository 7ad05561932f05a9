"""Rules about schedules: what is hidden, what waits."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Impact, Verdict
from hloopt.explanations import explain

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
WORK = "work {\n  a = f32[8] parameter(0)\n  ROOT n = f32[8] negate(a)\n}\n"
START = "s = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=sum"
DONE = "d = f32[8] all-reduce-done(s)"
OTHER = "o = f32[8] fusion(p), kind=kLoop, calls=work"


def program(*lines: str, header: str = "is_scheduled=true", more: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return (
        f"HloModule m, replica_count=2, {header}\n\n{SUM}{WORK}{more}\nENTRY e {{\n"
        f"  p = f32[8] parameter(0)\n{body}\n}}\n"
    )


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((START, DONE, f"ROOT {OTHER}"), ["s"]),
        ((START, OTHER, f"ROOT {DONE}"), []),
        ((OTHER, START, f"ROOT {DONE}"), ["s"]),
        ((START, "b = f32[4,2] bitcast(p)", "t = (f32[8]) tuple(p)",
          "g = f32[8] get-tuple-element(t), index=0", f"ROOT {DONE}"), ["s"]),
        ((START, START.replace("s =", "again ="), DONE, f"ROOT {DONE}".replace("d =", "d1 =")
          .replace("(s)", "(again)")), ["s", "again"]),
        ((START, START.replace("s =", "again ="), DONE, OTHER, f"ROOT {DONE}".replace("d =", "d1 =")
          .replace("(s)", "(again)")), ["s"]),
        (("s = (f32[8], f32[8], u32[]) copy-start(p)", "ROOT d = f32[8] copy-done(s)"), ["s"]),
        ((START.replace("to_apply=sum", 'to_apply=sum, backend_config={"collective_backend_config":'
          '{"is_sync":true}}'), f"ROOT {DONE}"), []),
    ],
)  # fmt: skip
def test_a_start_and_its_done_have_work_between_them(
    lines: tuple[str, ...], found: list[str]
) -> None:
    assert sorted(found_names("HLL001", program(*lines))) == sorted(found)


def test_an_order_is_needed() -> None:
    for code in ("HLL001", "HLL002", "HLL003"):
        found = check(code, program(START, f"ROOT {DONE}", header="num_partitions=1"))
        assert found.verdict is Verdict.NONE
        assert "not scheduled" in found.reason


REDUCE = "all-reduce(p), replica_groups={{0,1}}, to_apply=sum"


@pytest.mark.parametrize(
    ("lines", "more", "found"),
    [
        ((f"ROOT r = f32[8] {REDUCE}",), "", ["r"]),
        ((f"ROOT r = f32[8] {REDUCE}".replace("{0,1}", "{0},{1}"),), "", []),
        ((START, f"ROOT {DONE}"), "", []),
        ((START.replace("to_apply=sum", 'to_apply=sum, backend_config={"collective_backend_config":'
          '{"is_sync":true}}'), f"ROOT {DONE}"), "", ["s"]),
        (("s = ((f32[8]), f32[8]) async-start(p), calls=w", "ROOT d = f32[8] async-done(s)"),
         f"w {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] {REDUCE}\n}}\n", []),
        (("ROOT n = f32[8] negate(p)",),
         f"u {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] {REDUCE}\n}}\n", []),
    ],
)  # fmt: skip
def test_collectives_that_nothing_runs_beside(
    lines: tuple[str, ...], more: str, found: list[str]
) -> None:
    assert found_names("HLL002", program(*lines, more=more)) == found


def test_loops_count_by_their_trips() -> None:
    text = program(
        "z = s32[] constant(0)", "i = (s32[], f32[8]) tuple(z, p)",
        "ROOT w = (s32[], f32[8]) while(i), condition=more, body=body",
        more=f"""body {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  p = f32[8] get-tuple-element(s), index=1
  r = f32[8] {REDUCE}
  ROOT t = (s32[], f32[8]) tuple(j, r)
}}
more {{
  c = (s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  n = s32[] constant(7)
  ROOT l = pred[] compare(k, n), direction=LT
}}
""",
    )  # fmt: skip
    (found,) = violations("HLL002", text)
    assert "7 runs" in found.message
    assert found.impact.moved == 0
    (unknown,) = violations("HLL002", text, target=None)
    assert unknown.impact == Impact(moved=7 * 32)
    assert found.impact.seconds > 0


SCATTER = """
scatter {
  a = f32[8] parameter(0)
  ROOT r = f32[4] reduce-scatter(a), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
}
"""


@pytest.mark.parametrize("is_sync", [True, False])
def test_a_wrapped_collective_is_marked_at_its_start(is_sync: bool) -> None:
    config = f'{{"collective_backend_config":{{"is_sync":{str(is_sync).lower()}}}}}'
    text = program(
        f"s = ((f32[8]), f32[4]) async-start(p), calls=scatter, backend_config={config}",
        *("ROOT d = f32[4] async-done(s)",),
        more=SCATTER,
    )
    assert found_names("HLL002", text) == ["s"] * is_sync
    assert found_names("HLL001", text) == ["s"] * (not is_sync)


def page_example() -> str:
    explanation = explain("HLL003")
    assert explanation is not None
    return explanation.text.partition("```hlo\n")[2].partition("```")[0]


def test_what_is_covered_in_part_is_exposed_above_a_share() -> None:
    text = page_example()
    (found,) = violations("HLL003", text)
    assert found.location.instruction == "start"
    assert found.impact.seconds > 0
    assert violations("HLL003", text, share=0.9) == ()


def test_what_takes_no_time_covers_nothing() -> None:
    """It is work that HLL001 sees, so that the wait would be nobody's."""
    text = program(START, "i = u32[] partition-id()", f"ROOT {DONE}")
    assert violations("HLL001", text) == ()
    (found,) = violations("HLL003", text)
    assert found.impact.seconds > 0


def test_what_nothing_covers_is_found_by_others() -> None:
    text = page_example()
    assert violations("HLL001", text) == ()
    lines = text.splitlines()
    little = next(line for line in lines if "little =" in line)
    done = next(line for line in lines if "done =" in line)
    bare = text.replace(f"{little}\n{done}\n", f"{done}\n{little}\n")
    assert violations("HLL003", bare) == ()
    (found,) = violations("HLL001", bare)
    assert found.impact.seconds > 0
    assert violations("HLL001", bare, target=None)[0].impact.seconds == 0
