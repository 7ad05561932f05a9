"""Partners in modules that an edit changed everywhere at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.analysis.matching import ModuleMatch
from hloopt.analysis.matching.sequences import common_subsequence
from hloopt.files import read_module
from hloopt.ir import Opcode
from hloopt.text import parse_module

_TESTDATA = Path(__file__).parents[3] / "testdata"
_LAYERS = 40
_COPIED = (Opcode.ADD, Opcode.MULTIPLY, Opcode.DOT, Opcode.ALL_REDUCE, Opcode.FUSION)


def _layers(between: str = "", prefix: str = "") -> str:
    """A program of equal layers; after each sum of a layer comes `between`, if anything."""
    lines = [f"{prefix}x0 = f32[8,8] parameter(0)", f"{prefix}w = f32[8,8] parameter(1)"]
    for n in range(_LAYERS):
        read = f"{prefix}sum{n}"
        lines += [
            f"{prefix}d{n} = f32[8,8] dot({prefix}x{n}, {prefix}w), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            f"{prefix}sum{n} = f32[8,8] add({prefix}d{n}, {prefix}x{n})",
        ]
        if between:
            read = f"{prefix}b{n}"
            lines.append(f"{read} = f32[8,8] {between.format(f'{prefix}sum{n}')}")
        lines.append(f"{prefix}x{n + 1} = f32[8,8] tanh({read})")
    lines[-1] = f"ROOT {lines[-1]}"
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


@pytest.mark.parametrize(
    "between",
    ["copy({})", "opt-barrier({})", "bitcast({})", "negate({})", "multiply({}, {})"],
)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["added", "removed"])
def test_layers_stay_partners_where_something_comes_between_in_all_of_them(
    between: str, is_reversed: bool
) -> None:
    between = between.replace("{}, {}", "{0}, {0}")
    texts = [_layers(), _layers(between, prefix="q.")]
    old, new = map(parse_module, reversed(texts) if is_reversed else texts)
    match = ModuleMatch.of(old, new)
    others = [(a.name, b.name) for a, b in match.instructions.items()]
    wrong = [(a, b) for a, b in others if a.removeprefix("q.") != b.removeprefix("q.")]
    assert wrong == []
    assert len(others) == 2 + 3 * _LAYERS


def test_copies_that_stay_are_partners() -> None:
    """Copies are looked through where one side has many more; those on both sides still match."""
    some = _layers("copy({})").replace("ROOT q.", "ROOT ")
    fewer = some
    for n in range(0, _LAYERS, 2):
        fewer = fewer.replace(f"  b{n} = f32[8,8] copy(sum{n})\n", "")
        fewer = fewer.replace(f"tanh(b{n})", f"tanh(sum{n})")
    match = ModuleMatch.of(parse_module(some), parse_module(fewer))
    assert all(a.name == b.name for a, b in match.instructions.items())
    assert len(match.instructions) == 2 + 3 * _LAYERS + _LAYERS // 2


@pytest.mark.parametrize("is_reversed", [False, True], ids=["added", "removed"])
def test_no_partner_is_a_wrong_one_where_all_sums_are_copied(is_reversed: bool) -> None:
    path = str(_TESTDATA / "transformer_scan_8dev.after_optimizations.hlo.gz")
    old, new = read_module(path), read_module(path)
    for computation in new.computations.values():
        for instruction in list(computation.instructions):
            if instruction.opcode in _COPIED and not instruction.shape.is_tuple:
                copy = computation.add(Opcode.COPY, instruction.shape, [instruction])
                for user in list(instruction.users):
                    if user is not copy:
                        user.exchange_operand(instruction, copy)
                if instruction.is_root:
                    computation.set_root(copy)
    if is_reversed:
        old, new = new, old
    partners = ModuleMatch.of(old, new).instructions
    assert [(a.name, b.name) for a, b in partners.items() if a.name != b.name] == []
    assert len(partners) > 2700


def test_long_sequences_are_divided_at_what_occurs_as_often() -> None:
    old = ["a", "b", "c", "x"] * 300
    new = ["a", "b", "c"] * 300
    found = sorted(common_subsequence(old, new))
    assert found == [(4 * n + i, 3 * n + i) for n in range(300) for i in range(3)]


def test_in_a_module_and_itself_all_are_partners_of_themselves() -> None:
    """Names occur twice, so that the text is not compared; nothing else tells the copies apart."""
    module = parse_module(
        "HloModule m\n"
        "body { x = (f32[3], f32[3]) parameter(0)\n"
        "  a = f32[3] get-tuple-element(x), index=0\n"
        "  b = f32[3] get-tuple-element(x), index=1\n"
        "  ROOT t = (f32[3], f32[3]) tuple(a, b) }\n"
        "ENTRY e { x = f32[3] parameter(0)\n"
        "  a = f32[3] copy(x)\n  b = f32[3] copy(x)\n  c = f32[3] copy(x)\n"
        "  t = (f32[3], f32[3]) tuple(a, b)\n"
        "  w = (f32[3], f32[3]) call(t), to_apply=body\n"
        "  ROOT r = ((f32[3], f32[3]), f32[3]) tuple(w, c) }\n"
    )
    match = ModuleMatch.of(module, module)
    assert all(old is new for old, new in match.instructions.items())
    assert list(match.instructions) == list(module.instructions())
    assert list(match.computations) == list(module.computations.values())
