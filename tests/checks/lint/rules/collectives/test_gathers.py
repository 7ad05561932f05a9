"""HLL105 and HLL106: data that nobody reads, or that is there already."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

GROUPS = "replica_groups={{0,1,2,3}}, dimensions={0}"
GATHER = f"g = f32[1024] all-gather(p), {GROUPS}"
SMALL = {"size": 1}


def module(body: str, header: str = "is_scheduled=true, replica_count=4") -> str:
    return f"""
HloModule m, {header}

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT total = f32[] add(a, b)
}}

slices {{
  v = f32[1024] parameter(0)
  w = f32[4,256] bitcast(v)
  u = f32[1,256] slice(w), slice={{[1:2], [0:256]}}
  ROOT n = f32[1,256] negate(u)
}}

reads {{
  v.1 = f32[1024] parameter(0)
  ROOT n.1 = f32[1024] negate(v.1)
}}

gathering {{
  v.2 = f32[256] parameter(0)
  ROOT whole = f32[1024] all-gather(v.2), {GROUPS}
}}

gathering_slices {{
  v.3 = f32[256] parameter(0)
  whole.3 = f32[1024] all-gather(v.3), {GROUPS}
  ROOT part = f32[256] slice(whole.3), slice={{[0:256]}}
}}

ENTRY e {{
  p = f32[256] parameter(0)
  i = s32[] parameter(1)
  q = f32[256] parameter(2)
  {body}
}}
"""


# -- HLL105: sliced-all-gather --------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        f"{GATHER}\n  ROOT s = f32[256] slice(g), slice={{[256:512]}}",
        f"{GATHER}\n  ROOT s = f32[256] slice(g), slice={{[0:1024:4]}}",
        f"{GATHER}\n  ROOT s = f32[256] dynamic-slice(g, i), dynamic_slice_sizes={{256}}",
        f"{GATHER}\n  ROOT s = f32[1,256] fusion(g), kind=kLoop, calls=slices",
        f"{GATHER}\n  r = f32[4,256] reshape(g)\n"
        "  t = f32[256,4] transpose(r), dimensions={1,0}\n"
        "  c = f32[256,4] copy(t)\n  ROOT s = f32[256,1] slice(c), slice={[0:256], [1:2]}",
        f"{GATHER}\n  s = f32[128] slice(g), slice={{[0:128]}}\n"
        "  u = f32[128] slice(g), slice={[128:256]}\n  ROOT t = (f32[128], f32[128]) tuple(s, u)",
    ],
)  # fmt: skip
def test_only_slices_are_read(body: str) -> None:
    (found,) = violations("HLL105", module(body), **SMALL)
    assert found.message.startswith("%g gathers 4.0 KiB, of which only slices are read, 1.0 KiB")
    # of the 3 KiB that a device sends three quarters
    assert found.impact.moved == 3 * 1024 * 3 // 4


@pytest.mark.parametrize(
    "body",
    [
        f"{GATHER}\n  ROOT n = f32[1024] fusion(g), kind=kLoop, calls=reads",
        f"{GATHER}\n  n = f32[1024] negate(g)\n  ROOT s = f32[256] slice(n), slice={{[0:256]}}",
        # a slice, and all of it
        f"{GATHER}\n  s = f32[256] slice(g), slice={{[0:256]}}\n"
        "  ROOT t = (f32[256], f32[1024]) tuple(s, g)",
        f"ROOT {GATHER}\n  s = f32[256] slice(g), slice={{[0:256]}}",
        # slices that may be all of it
        f"{GATHER}\n  s = f32[512] slice(g), slice={{[0:512]}}\n"
        "  u = f32[512] slice(g), slice={[256:768]}\n  ROOT t = (f32[512], f32[512]) tuple(s, u)",
        # nobody reads anything
        f"{GATHER}\n  ROOT n = f32[256] copy(p)",
        # not gathered
        "g = f32[256] copy(p)\n  ROOT s = f32[2] slice(g), slice={[0:2]}",
        # nothing is sent
        "g = f32[256] all-gather(p), replica_groups={{0},{1},{2},{3}}, dimensions={0}\n"
        "  ROOT s = f32[2] slice(g), slice={[0:2]}",
    ],
)
def test_all_of_it_may_be_read(body: str) -> None:
    assert not found_names("HLL105", module(body), **SMALL)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            f"start = (f32[256], f32[1024]) all-gather-start(p), {GROUPS}\n"
            "  done = f32[1024] all-gather-done(start)\n"
            "  ROOT s = f32[256] slice(done), slice={[0:256]}",
            "start",
        ),
        (
            "start = ((f32[256]), f32[1024]) async-start(p), calls=gathering\n"
            "  done = f32[1024] async-done(start)\n"
            "  ROOT s = f32[256] slice(done), slice={[0:256]}",
            "start",
        ),
        ("ROOT f = f32[256] fusion(p), kind=kCustom, calls=gathering_slices", "f"),
    ],
)
def test_forms_count_once(body: str, name: str) -> None:
    (found,) = violations("HLL105", module(body), **SMALL)
    assert found.location.instruction == name
    assert found.impact.moved == 3 * 1024 * 3 // 4


@pytest.mark.parametrize(
    ("readers", "moved"),
    [
        ("s = f32[256] slice(x), slice={[0:256]}\n  u = f32[256] slice(y), slice={[0:256]}", 4608),
        ("s = f32[256] slice(x), slice={[0:256]}\n  u = f32[256] copy(p)", 5376),
        ("s = f32[1024] negate(x)\n  u = f32[1024] negate(y)", None),
    ],
)
def test_of_several_operands_all_results_count(readers: str, moved: int | None) -> None:
    shapes = "(f32[1024], f32[1024])" if moved is None else "(f32[256], f32[256])"
    body = f"""g = (f32[1024], f32[1024]) all-gather(p, q), {GROUPS}
  x = f32[1024] get-tuple-element(g), index=0
  y = f32[1024] get-tuple-element(g), index=1
  {readers}
  ROOT t = {shapes} tuple(s, u)"""
    found = violations("HLL105", module(body), **SMALL)
    assert [each.impact.moved for each in found] == ([] if moved is None else [moved])


def test_an_operand_twice_is_read_twice() -> None:
    twice = """two {
  v.8 = f32[1024] parameter(0)
  w.8 = f32[1024] parameter(1)
  x.8 = f32[512] slice(v.8), slice={[0:512]}
  y.8 = f32[512] slice(w.8), slice={[512:1024]}
  ROOT z.8 = f32[512] add(x.8, y.8)
}

ENTRY"""
    body = f"{GATHER}\n  ROOT f = f32[512] fusion(g, g), kind=kLoop, calls=two"
    assert not found_names("HLL105", module(body).replace("ENTRY", twice), size=1, share=0.0)


def test_options_are_the_least_share_and_bytes() -> None:
    text = module(f"{GATHER}\n  ROOT s = f32[256] slice(g), slice={{[0:256]}}")
    assert not found_names("HLL105", text)
    assert found_names("HLL105", text, size=3072) == ["g"]
    assert not found_names("HLL105", text, size=3073)
    assert found_names("HLL105", text, size=1, share=0.75) == ["g"]
    assert not found_names("HLL105", text, size=1, share=0.76)


def test_before_fusion_there_is_no_verdict() -> None:
    body = "n = f32[256] negate(p)\n  k = f32[256] exponential(n)\n  " + GATHER.replace(
        "(p)", "(k)"
    )
    text = module(f"{body}\n  ROOT s = f32[256] slice(g), slice={{[0:256]}}", "replica_count=4")
    assert "not fused" in check("HLL105", text).reason


# -- HLL106: all-gather-of-replicated -------------------------------------------------------------

TOTAL = "r = f32[256] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=sum"
BROADCAST = "collective-broadcast(r), replica_groups={{0,1,2,3}}"


@pytest.mark.parametrize(
    "body",
    [
        f"{TOTAL}\n  ROOT g = f32[1024] all-gather(r), {GROUPS}",
        f"{TOTAL}\n  ROOT g = f32[256] all-to-all(r), {GROUPS}",
        f"{TOTAL}\n  ROOT g = f32[256] {BROADCAST}",
        f"c = f32[] constant(1)\n  r = f32[256] broadcast(c), dimensions={{}}\n"
        f"  ROOT g = f32[1024] all-gather(r), {GROUPS}",
        # alike within the groups, whatever else
        f"{TOTAL}\n  ROOT g = f32[512] all-gather(r), {GROUPS}".replace(
            "{{0,1,2,3}}", "{{0,1},{2,3}}"
        ),
    ],
)
def test_devices_have_it_already(body: str) -> None:
    (found,) = violations("HLL106", module(body))
    assert "%g sends what all devices of a replica group have alike: %r" in found.message
    assert found.impact.moved > 0


@pytest.mark.parametrize(
    "body",
    [
        f"ROOT {GATHER}",
        # alike within other groups
        f"{TOTAL}\n  ROOT g = f32[1024] all-gather(r), {GROUPS}".replace(
            "{{0,1,2,3}}", "{{0,1},{2,3}}", 1
        ),
        f"{TOTAL}\n  n = u32[] replica-id()\n  f = f32[] convert(n)\n"
        "  b = f32[256] broadcast(f), dimensions={}\n  d = f32[256] add(b, r)\n"
        f"  ROOT g = f32[1024] all-gather(d), {GROUPS}",
        # a permute leaves devices without, a second sum doubles
        f"{TOTAL}\n  ROOT g = f32[256] collective-permute(r), source_target_pairs={{{{0,1}}}}",
        f"{TOTAL}\n  ROOT g = f32[256] all-reduce(r), replica_groups={{{{0,1,2,3}}}}, to_apply=sum",
        # nothing is sent
        f"{TOTAL}\n  ROOT g = f32[256] all-gather(r), replica_groups={{{{0}},{{1}},{{2}},{{3}}}}, "
        "dimensions={0}",
    ],
)
def test_devices_do_not_have_it(body: str) -> None:
    assert not found_names("HLL106", module(body))


def test_groups_of_more_replicas_than_there_are_say_nothing() -> None:
    body = f"ROOT {GATHER}"
    assert not found_names("HLL106", module(body, "is_scheduled=true, num_partitions=8"))


def test_groups_of_partitions() -> None:
    body = "ROOT g = f32[1024] all-gather(r), channel_id=1, replica_groups={{0,1,2,3}}, "
    body = "r = f32[256] copy(p)\n  " + body + "use_global_device_ids=true, dimensions={0}"
    text = module(body, "is_scheduled=true, num_partitions=4")
    assert not found_names("HLL106", text)
    replicated = text.replace("p = f32[256] parameter(0)",
                              "p = f32[256] parameter(0), sharding={replicated}")  # fmt: skip
    assert found_names("HLL106", replicated) == ["g"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            f"start = (f32[256], f32[1024]) all-gather-start(r), {GROUPS}\n"
            "  ROOT g = f32[1024] all-gather-done(start)",
            "start",
        ),
        (
            "start = ((f32[256]), f32[1024]) async-start(r), calls=gathering\n"
            "  ROOT g = f32[1024] async-done(start)",
            "start",
        ),
        ("ROOT f = f32[256] fusion(r), kind=kCustom, calls=gathering_slices", "f"),
    ],
)
def test_replicated_operands_of_all_forms_count_once(body: str, name: str) -> None:
    (found,) = violations("HLL106", module(f"{TOTAL}\n  {body}"))
    assert found.location.instruction == name
    assert found.impact.moved == 3072


def test_of_several_operands_those_that_are_alike_count() -> None:
    gather = "ROOT g = (f32[1024], f32[1024]) all-gather(OPERANDS), " + GROUPS
    text = module(f"{TOTAL}\n  {gather}")
    (part,) = violations("HLL106", text.replace("OPERANDS", "r, q"))
    (whole,) = violations("HLL106", text.replace("OPERANDS", "r, r"))
    assert [each.instruction for each in part.related] == ["r"]
    assert (part.impact.moved, whole.impact.moved) == (3072, 6144)
    assert part.impact.seconds == 0.0
    assert whole.impact.seconds > 0.0


def test_a_module_that_is_not_partitioned_has_no_verdict() -> None:
    body = (
        f'k = f32[256] custom-call(p), custom_call_target="Sharding", '
        f"sharding={{devices=[4]<=[4]}}\n  ROOT {GATHER}"
    )
    assert "not partitioned" in check("HLL106", module(body)).reason
