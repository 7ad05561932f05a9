"""Judgement of a matching: equality with the known map, contradictions, number of edits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from diff_lib.automorphisms import is_equal_up_to_automorphisms
from diff_lib.content import label, values
from diff_lib.known_pair import KnownPair, Partners


class Verdict(StrEnum):
    """Verdicts on a matching in comparison with the known map."""

    EQUAL = "equal"
    AUTOMORPHIC = "equal up to automorphisms"
    OTHER_LAYER = "equal but for which of equal layers it is"
    AS_SHORT = "another map with as few edits"
    COMPATIBLE = "no pair contradicts, edits within 1.5 times"
    WRONG = "wrong"


@dataclass(slots=True)
class Judgement:
    """A verdict with the figures it rests on."""

    verdict: Verdict
    contradictions: int
    """Pairs of which at least one instruction has another known partner."""
    missing: int
    """Instructions with a known partner for which none was found."""
    extra: int
    """Pairs of instructions without known partners."""
    edits: int
    known_edits: int


def judge(pair: KnownPair, found: Partners) -> Judgement:
    """Compare the pairs found with those known."""
    known = pair.partners
    missing = sum(1 for old in known if old not in found)
    images = set(known.values())
    extra = sum(1 for old, new in found.items() if old not in known and new not in images)
    edits, known_edits = count_edits(pair, found), count_edits(pair, known)
    contradictions = 0
    if found == known:
        verdict = Verdict.EQUAL
    elif is_equal_up_to_automorphisms(pair, found):
        verdict = Verdict.AUTOMORPHIC
    elif found in pair.others:
        verdict = Verdict.OTHER_LAYER
    else:
        among_known = {a: b for a, b in found.items() if a in known and b in images}
        if not is_equal_up_to_automorphisms(pair, among_known):
            contradictions = _count_contradictions(pair, found)
        if not contradictions and edits <= 1.5 * known_edits:
            verdict = Verdict.COMPATIBLE
        elif len(found) == len(known) and edits <= known_edits:
            verdict = Verdict.AS_SHORT
        else:
            verdict = Verdict.WRONG
    return Judgement(verdict, contradictions, missing, extra, edits, known_edits)


def count_edits(pair: KnownPair, partners: Partners) -> int:
    """Number of removed, added and changed instructions that a matching implies."""
    removed = pair.before.instruction_count() - len(partners)
    added = pair.after.instruction_count() - len(partners)
    changed = sum(
        [partners.get(operand) for operand in old.operands] != list(new.operands)
        or label(old) != label(new)
        or old.is_root != new.is_root
        for old, new in partners.items()
    )
    return removed + added + changed


def _count_contradictions(pair: KnownPair, found: Partners) -> int:
    """Count pairs of which one instruction has another partner in the known map.

    If a pass merges equal instructions, or copies one, any of them is as good as the one that the
    pass happens to keep.
    """
    known = pair.partners
    origin = {new: old for old, new in known.items()}
    old_values, new_values = values(pair.before), values(pair.after)
    count = 0
    for old, new in found.items():
        partner, source = known.get(old, new), origin.get(new, old)
        is_copy = new not in origin and new_values[new] == new_values[partner]
        is_merged = old not in known and old_values[old] == old_values[source]
        count += (partner is not new and not is_copy) or (source is not old and not is_merged)
    return count
