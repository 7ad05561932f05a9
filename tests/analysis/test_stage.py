"""What the text of a module tells of the stage it is at."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError
from hloopt.files import load
from hloopt.text import parse_module


def _stage(body: str, header: str = "num_partitions=4", before: str = "") -> Stage:
    return Stage.of(
        parse_module(
            f"HloModule m{', ' if header else ''}{header}\n{before}\nENTRY e {{\n{body}\n}}"
        )
    )


_ARGUMENT = "  p = f32[8]{0} parameter(0), sharding={devices=[4]<=[4]}\n"


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        pytest.param("  ROOT p = f32[8] parameter(0)", "", True, id="one-device"),
        pytest.param("  ROOT p = f32[8] parameter(0)", "replica_count=4", True, id="replicas"),
        pytest.param(
            _ARGUMENT + "  ROOT a = f32[8] add(p, p), sharding={devices=[4]<=[4]}",
            *("num_partitions=4", False),
            id="sharded-result",
        ),
        pytest.param(
            _ARGUMENT + "  ROOT a = f32[8] add(p, p), sharding={devices=[4]<=[4]}",
            *("", False),
            id="header-without-partitions",
        ),
        pytest.param(
            _ARGUMENT + "  b = f32[8] add(p, p), sharding={replicated}\n  ROOT a = f32[8] abs(b)",
            *("num_partitions=4", False),
            id="replicated-inside",
        ),
        pytest.param(
            "  p = f32[8] parameter(0)\n  b = f32[8] add(p, p), sharding={maximal device=1}\n"
            "  ROOT a = f32[8] abs(b)",
            *("num_partitions=4", False),
            id="on-one-device",
        ),
        pytest.param(
            "  p = f32[8] parameter(0), sharding={mesh['x'=4], [{'x'}]}\n"
            "  ROOT a = f32[8] abs(p), sharding={mesh['x'=4], [{'x'}]}",
            *("", False),
            id="mesh",
        ),
        pytest.param(
            "  p = f32[8] parameter(0)\n"
            '  ROOT c = f32[8] custom-call(p), custom_call_target="Sharding"',
            *("num_partitions=4", False),
            id="sharding-call",
        ),
        pytest.param(
            "  p = f32[8] parameter(0)\n"
            '  ROOT c = f32[2] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape"',
            *("num_partitions=4", False),
            id="shardy-call",
        ),
        pytest.param(
            "  p = f32[8] parameter(0)\n  ROOT a = f32[8] abs(p)",
            'num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["d"=4]>}}',
            *(False,),
            id="shardy-meshes",
        ),
        pytest.param(
            _ARGUMENT + "  ROOT a = f32[8] abs(p)", "num_partitions=4", None, id="arguments-only"
        ),
        pytest.param(
            _ARGUMENT + "  ROOT a = f32[8] abs(p)",
            "num_partitions=4, is_scheduled=true",
            *(True,),
            id="scheduled",
        ),
        pytest.param(
            _ARGUMENT
            + "  ROOT a = f32[32] all-gather(p), dimensions={0}, replica_groups={{0,1,2,3}},"
            " channel_id=1, use_global_device_ids=true",
            *("num_partitions=4", True),
            id="collective",
        ),
        pytest.param(
            _ARGUMENT + "  ROOT a = u32[] partition-id()", "num_partitions=4", True, id="partition"
        ),
        pytest.param(
            _ARGUMENT + "  g = f32[32] all-gather(p), dimensions={0}, replica_groups={{0,1,2,3}},"
            " channel_id=1, use_global_device_ids=true, sharding={replicated}\n"
            "  ROOT a = f32[32] abs(g), sharding={replicated}",
            *("num_partitions=4", True),
            id="not-yet-cleaned-up",
        ),
        pytest.param(
            _ARGUMENT + "  r = f32[8] all-to-all(p), dimensions={0}, replica_groups={{0,1,2,3}},"
            " channel_id=1, sharding={manual}\n"
            "  ROOT a = f32[8] abs(r), sharding={devices=[4]<=[4]}",
            *("num_partitions=4", False),
            id="written-per-device",
        ),
        pytest.param(
            _ARGUMENT + "  r = f32[8] all-reduce(p), replica_groups={{0}}, to_apply=add\n"
            "  ROOT a = f32[8] abs(r), sharding={devices=[4]<=[4]}",
            *("num_partitions=4", False),
            id="between-replicas",
        ),
        pytest.param(
            "  p = f32[8] parameter(0)\n  ROOT a = f32[8] abs(p)",
            "num_partitions=4",
            True,
            id="none",
        ),
        pytest.param(
            "  t = token[] after-all()\n  i = (f32[8], token[]) infeed(t),"
            " sharding={{devices=[4]<=[4]}, {maximal device=0}}\n"
            "  ROOT a = f32[8] get-tuple-element(i), index=0",
            *("num_partitions=4", True),
            id="infeed-keeps-its-sharding",
        ),
    ],
)
def test_whether_a_module_is_partitioned(body: str, header: str, expected: bool | None) -> None:
    found = _stage(body, header, _ADD if "to_apply=add" in body else "").partitioned
    assert found.holds is expected, found.evidence


def test_devices_are_those_of_shardings_where_the_header_says_nothing() -> None:
    body = _ARGUMENT + "  ROOT a = f32[8] add(p, p), sharding={devices=[4]<=[4]}"
    assert _stage(body, "").devices == 4


_ADD = "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"
_LOOP = """
body { p = (s32[], f32[8]) parameter(0)  ROOT t = (s32[], f32[8]) copy(p) }
cond { p = (s32[], f32[8]) parameter(0)  ROOT c = pred[] constant(false) }
"""
_P = "  p = f32[8] parameter(0)\n"


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        pytest.param(_P + "  ROOT a = f32[8] abs(p)", "", True, id="nothing-needs-one"),
        pytest.param("  ROOT p = f32[8] parameter(0)", "", False, id="argument-returned"),
        pytest.param(
            "  c = f32[] constant(1)\n  ROOT t = (f32[]) tuple(c)",
            "",
            False,
            id="constant-returned",
        ),
        pytest.param(
            _P + "  a = f32[8] abs(p)\n  ROOT t = (f32[8], f32[8]) tuple(a, a)",
            *("", False),
            id="returned-twice",
        ),
        pytest.param(
            "  p = (s32[], f32[8]) parameter(0)\n"
            "  ROOT w = (s32[], f32[8]) while(p), condition=cond, body=body",
            *("", None),
            id="loop",
        ),
        pytest.param(
            _P + "  s = s32[] constant(0)\n  u = f32[1] constant({1})\n"
            "  ROOT d = f32[8] dynamic-update-slice(p, u, s)",
            *("", None),
            id="in-place",
        ),
        pytest.param(
            _P + "  ROOT a = f32[8] abs(p)",
            *("input_output_alias={ {}: (0, {}, may-alias) }", None),
            id="aliased",
        ),
        pytest.param("  ROOT p = f32[8] parameter(0)", "is_scheduled=true", True, id="scheduled"),
    ],
)
def test_whether_copies_are_inserted(body: str, header: str, expected: bool | None) -> None:
    found = _stage(body, header, _LOOP if "while(" in body else "").copies_inserted
    assert found.holds is expected, found.evidence


def test_a_shared_callee_is_not_flat() -> None:
    double = "f { x = f32[8] parameter(0)  ROOT d = f32[8] add(x, x) }"
    one = "  p = f32[8] parameter(0)\n  ROOT a = f32[8] call(p), to_apply=f"
    assert _stage(one, "", double).flat.holds
    two = one.replace("ROOT a", "a") + "\n  ROOT b = f32[8] call(a), to_apply=f"
    assert _stage(two, "", double).flat.holds is False


def test_fusion() -> None:
    p = "  p = f32[8] parameter(0)\n"
    assert _stage(p + "  ROOT a = f32[8] abs(p)", "").fused.holds is None
    pair = p + "  a = f32[8] abs(p)\n  ROOT b = f32[8] negate(a)"
    assert _stage(pair, "").fused.holds is False
    body = "f { x = f32[8] parameter(0)  ROOT d = f32[8] add(x, x) }"
    fusion = p + "  ROOT a = f32[8] fusion(p), kind=kLoop, calls=f"
    assert _stage(fusion, "", body).fused.holds
    rest = "\n  b = f32[8] negate(a)\n  ROOT c = f32[8] abs(b)"
    early = fusion.replace("ROOT a", "a") + rest  # a product made a fusion before all others
    assert _stage(early, "", body).fused.holds is False
    assert _stage(early, "is_scheduled=true", body).fused.holds
    copied = early.replace("negate", "copy").replace("abs", "copy")
    assert _stage(copied, "", body).fused.holds


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        pytest.param("  a = f32[8] abs(p)\n  ROOT b = f32[8] cosine(a)", "", True, id="chain"),
        pytest.param(
            "  a = f32[8] abs(p)\n  b = f32[8] cosine(p)\n  ROOT c = f32[8] add(a, b)",
            *("", False),
            id="two-orders",
        ),
        pytest.param(
            "  a = f32[8] abs(p)\n  b = f32[8] cosine(p), control-predecessors={a}\n"
            "  ROOT c = f32[8] add(a, b)",
            *("", True),
            id="control-dependency",
        ),
        pytest.param(
            "  a = f32[8] abs(p)\n  b = f32[8] cosine(p)\n  ROOT c = f32[8] add(a, b)",
            *("is_scheduled=true", True),
            id="scheduled",
        ),
        pytest.param(
            "  a = f32[8] abs(p)\n  k = f32[8] constant({...})\n  ROOT c = f32[8] add(a, k)",
            *("", True),
            id="constant",
        ),
        pytest.param("  ROOT c = f32[8] map(p), dimensions={0}, to_apply=f", "", True, id="mapped"),
    ],
)
def test_whether_the_order_is_known(body: str, header: str, expected: bool) -> None:
    mapped = (
        "f { x = f32[] parameter(0)  a = f32[] abs(x)  b = f32[] cosine(x)"
        "  ROOT c = f32[] add(a, b) }"
    )
    found = _stage(_P + body, header, mapped if "to_apply" in body else "").ordered
    assert found.holds is expected, found.evidence


def test_memory_spaces_and_tiles_are_named_with_an_instruction() -> None:
    stage = _stage(
        "  p = f32[8,128]{1,0:T(8,128)} parameter(0)\n"
        "  ROOT c = f32[8,128]{1,0:T(8,128)S(1)} copy(p)",
        "",
    )
    assert {space: i.name for space, i in stage.memory_spaces.items()} == {1: "c"}
    assert stage.tiled is not None
    assert stage.tiled.name == "p"


def test_what_the_partitioner_was_given_and_made_is_told_apart(shared: Path) -> None:
    """On XLA's own tests of its partitioner: nothing it made is called unpartitioned, and what
    it was given only where nothing, or nothing that can be seen, differs between devices."""
    missed = []
    for path in sorted((shared / "oracle" / "spmd").glob("*/*.hlo.gz")):
        try:
            module = load(str(path))
        except HloError:
            continue  # one that XLA's verifier accepts for its own pass only
        holds = Stage.of(module).partitioned.holds
        if ".before" in path.name and holds is not False:
            missed.append(path.name)
        if ".before" not in path.name and holds is False:
            missed.append(path.name)
    assert set(missed) <= _INDISTINGUISHABLE


_INDISTINGUISHABLE = {
    "AllReduceNoSharding.0.before.hlo.gz",  # replicated arguments, and an all-reduce already
    "ScanFusionInBody_Replicated.0.before.hlo.gz",  # replicated, and fused already
    "ShardingPreprocessOrderConditional.0.before.hlo.gz",  # no sharding in it
    "SubgroupUnreducedParamV3.0.before.hlo.gz",  # only an argument is sharded
    "UnreducedParam.0.before.hlo.gz",
    "UnreducedParamV3.0.before.hlo.gz",
    "TupleSubgroupUnreducedParamV3.0.before.hlo.gz",
}
