"""Every key of selectors, with each of its operators and their mirror images."""

from __future__ import annotations

import re

import pytest
from tests.query.programs import module, selected

from hloopt.ir.opcode import OPCODES
from hloopt.query import parse_selector
from hloopt.query.keys import FAMILIES, KEYS
from hloopt.query.kinds import FLAG
from hloopt.text import parse_module

LOOPS = "ip ii ix in it cp ci cl cc qp qw op oc"  # the inner condition runs in the outer body

CASES = {
    "opcode=copy": "turned back",
    "opcode=copy|all-*": "turned back gathered",
    "opcode=async-start": "rs",
    "opcode=reduce-scatter-start": "rs",
    "opcode=reduce-scatter*": "ss rs rd",
    "opcode~^async": "rs rd",
    "name=back": "back",
    "name=%back|%fusion.*": "back fusion.1",
    "name~^r[sd]$": "rs rd",
    "computation=%sum": "a b c",
    "computation=*_condition": "cp ci cl cc rp ri rl rc",
    "computation~^fus": "fp fz fr",
    "type=bf16": "cc.1",
    "type=s32, in-entry": "n state loop",
    "type=tuple, in-entry": "state loop rs",
    "type=u*": "rs",
    "type~^(pred|bf)": "cc rc cc.1",
    "shape=bf16[4]": "cc.1",
    "shape=f32[4,8]{0,1}": "turned",
    "shape=f32[4,8], opcode=copy": "turned back",
    "shape=f32[ 4, 8 ]{0,1}": "turned",
    "shape=(s32[], f32[4,8]), in-entry": "state loop",
    "shape=(s32[], f32[*,8]), in-entry": "state loop",
    "shape=f32[*]{*S(5)}": "h",
    "shape=f32[64]": "h",
    "shape=f32[64]{0}": "",
    "shape=pred[]": "cc rc",
    "shape=bf16[4]|f32[0,8]": "e cc.1",
    r"shape~^\(\(": "rs",
    "shape~S.5.": "h",
    "rank=2, type=u32": "rs",
    "rank=1": "fr h fusion.1 cc.1",
    "rank>1, opcode=parameter, in-entry": "x e",
    "rank>=2, rank<=0, in-entry": "state loop rs",
    "rank<1, in-entry": "n state loop rs",
    "dimension=0": "e",
    "dimension>8": "h gathered",
    "dimension<3": "ss e rs rd",
    "elements=0": "e",
    "elements>33": "h rs gathered",
    "elements=33, in-entry": "state loop",
    "bytes=0": "e",
    "bytes=8|16, in-entry": "fusion.1 cc.1",
    "bytes>132": "h rs gathered",
    "bytes>=0.25KiB": "h gathered",
    "bytes<4B": "cc rc e",
    "bytes<=1, type=pred": "cc rc",
    "memory_space=5": "h",
    "memory-space>0": "h",
    "operand=%back": "fusion.1 rs sum.0",
    "operand=h": "cc.1",
    "operand~^sum": "gathered",
    "operands=4": "cc.1",
    "operands>1, in-entry": "state cc.1 sum.0",
    "operands=0, not parameter|constant": "",
    "user=fusion.1|rs": "back",
    "user~gath": "sum.0",
    "users=0, not is-root": "cc.1",
    "users>=3": "back",
    "users=0, in-entry": "cc.1 gathered",
    "calls=fused": "fusion.1",
    "calls=*_body": "qw loop",
    "calls~^called$": "oc",
    "op_name=*/gather": "gathered",
    "op-name~attention": "in",
    'op_name="jit(step)/a, b"': "turned",
    "source=model.py": "in gathered",
    "source=model.py:12": "in gathered",
    "source=model.py:1": "",
    "source=/home/me/other.py:7": "turned",
    "source=me/*.py": "in turned gathered",
    "source=odel.py": "",
    "source=linear.py": "",
    "source~r.py:7$": "turned",
    "stack=linear.py:120": "in",
    "stack~site-packages": "in",
    "stack=model.py": "in gathered",
    'target="my ""kernel"""': "cc.1",
    "target=my*": "cc.1",
    "target~kern": "cc.1",
    "channel=3": "ss",
    "channel<3": "gathered",
    "group_size=4": "gathered",
    "group_size=2": "ss",
    "group-size>1": "ss gathered",
    "execution_thread=parallel": "a b c sp ss",
    "execution-thread~^par": "a b c sp ss",
    "is-collective": "ss rs rd gathered",
    "is_async": "rs rd",
    "is-root, in-entry": "gathered",
    "in-entry, opcode=parameter": "x n e h",
    "in-loop": LOOPS,
    "in-fusion": "a b c fp fz fr",
    "in-async": "a b c sp ss",
    "attr.direction=LT": "cc rc",
    "attr.dimensions={0}": "ss gathered",
    "attr.dimensions={ 0 }": "ss gathered",
    "attr.kind~Input": "fusion.1",
    "attr.sharding": "x",
    "attr.async_execution_thread=parallel": "rs",
    "attr.replica_groups={{0,1}, {2,3}}": "ss",
    "frontend.note=kept": "back",
    "frontend.note=k*": "back",
    "frontend.other={a}": "back",
    "frontend.note~^k": "back",
}


@pytest.mark.parametrize("selector", CASES)
def test_a_key_selects(selector: str) -> None:
    assert selected(selector) == CASES[selector].split()


def test_every_key_and_operator_has_a_case() -> None:
    used = " ".join(CASES).replace("-", "_")
    for key in KEYS.values():
        name = key.name.replace("-", "_")
        if key.kind is FLAG:
            assert name in used
            continue
        assert any(f"{name}{operator}" in used for operator in ("=", "<", ">")), name
        assert ("~" in key.kind.operators) <= (f"{name}~" in used), name
    assert all(f"{prefix}." in used for prefix in FAMILIES)


MIRRORED = [case for case in CASES if ", " not in case and re.match(r"[\w.-]+[=~]", case)]


@pytest.mark.parametrize("selector", MIRRORED)
def test_the_mirror_image_selects_the_rest(selector: str) -> None:
    mirrored = re.sub(r"^([\w.-]+)([=~])", r"\1!\2", selector)
    chosen, rest = selected(selector), selected(mirrored)
    assert sorted(chosen + rest) == sorted(selected("*"))
    assert selected(f"not {selector}") == rest


def test_a_key_alone_asks_whether_there_is_a_value() -> None:
    assert selected("channel") == ["ss", "gathered"]
    assert selected("op_name") == ["in", "turned", "gathered"]
    assert selected("frontend.note") == ["back"]
    assert selected("not rank, in-entry") == []
    assert selected("calls, in-entry") == ["loop", "fusion.1", "rs"]


def test_what_has_no_value_is_selected_by_the_mirror_image_only() -> None:
    everything = selected("*")
    assert len(everything) == len(list(module().instructions()))
    assert set(selected("channel<2")) | set(selected("channel>=2")) == {"ss", "gathered"}
    assert len(selected("channel!=1")) == len(everything) - 1


def test_no_key_is_an_opcode() -> None:
    assert OPCODES.keys().isdisjoint(KEYS)
    assert OPCODES.keys().isdisjoint(name.replace("_", "-") for name in KEYS)


def test_an_async_start_of_several_operations_has_no_short_form() -> None:
    found = parse_module(
        "HloModule m\n"
        "w { a = f32[4] parameter(0)  b = f32[4] copy(a)  ROOT c = f32[4] all-to-all(b) }\n"
        "ENTRY e { p = f32[4] parameter(0)  s = ((f32[4]), f32[4]) async-start(p), calls=w\n"
        "  ROOT d = f32[4] async-done(s) }"
    )
    assert not list(parse_selector("all-to-all-start").select(found))
    assert [i.name for i in parse_selector("is-collective").select(found)] == ["c", "s", "d"]


def test_parts_may_be_empty() -> None:
    found = parse_module(
        "HloModule m ENTRY e { p = () parameter(0) k = token[] after-all() ROOT t = ((), token[])"
        " tuple(p, k) }"
    )
    for selector, names in {
        "bytes=0": ["p", "k", "t"],
        "rank": [],
        "dimension!=0": ["p", "k", "t"],
        "type=token": ["k", "t"],
        "type=tuple": ["p", "t"],
        "shape=()": ["p"],
        "in-loop or in-fusion or in-async": [],
    }.items():
        assert [i.name for i in parse_selector(selector).select(found)] == names


def test_a_change_of_the_module_is_seen() -> None:
    found = module()
    selector = parse_selector("in-loop, users=1, opcode=negate")
    (negate,) = selector.select(found)
    assert selector.matches(negate)
    loop = next(i for i in found.instructions() if i.name == "loop")
    loop.replace_all_uses_with(loop.operands[0])
    loop.parent.remove(loop)
    called = next(i for i in found.instructions() if i.name == "qw")
    called.replace_all_uses_with(called.operands[0])
    called.parent.remove(called)
    assert not selector.matches(negate)
    assert list(selector.select(found)) == []
