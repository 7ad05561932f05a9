"""The phi values that are needed: the others always equal one of what they merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def superfluous_phis(inputs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The phis that merge one value only, each with that value.

    `inputs` holds the values a phi merges, itself and other phis possibly among them. A phi goes
    if all that reaches it, through other phis too, is one value that is not a phi, or if all it
    merges itself, without itself, is one phi that stays. Near-linear in the inputs.
    """
    result = {phi: source for phi, source in _sources(inputs).items() if source is not None}
    users: dict[int, list[int]] = {}
    for phi, values in inputs.items():
        if phi not in result:
            for value in values:
                users.setdefault(value, []).append(phi)
    waiting = [phi for phi in inputs if phi not in result]
    for phi in waiting:  # grows: a phi that goes may make its users' inputs equal
        if phi in result:
            continue
        merged = {resolve(result, value) for value in inputs[phi]} - {phi}
        if len(merged) == 1:
            result[phi] = merged.pop()
            users.setdefault(result[phi], []).extend(users.get(phi, ()))
            waiting += users.get(phi, ())
    return {phi: resolve(result, phi) for phi in result}


def resolve(replacements: Mapping[int, int], value: int) -> int:
    """The value that stands for `value` in the end."""
    while value in replacements:
        value = replacements[value]
    return value


def _sources(inputs: Mapping[int, Sequence[int]]) -> dict[int, int | None]:
    """Per phi the one value, not a phi, that reaches it; None where there are several."""
    sources: dict[int, int | None] = {}
    users: dict[int, list[int]] = {}
    waiting: list[tuple[int, int | None]] = []
    for phi, values in inputs.items():
        for value in values:
            if value in inputs:
                users.setdefault(value, []).append(phi)
            else:
                waiting.append((phi, value))
    for phi, source in waiting:  # grows; every phi changes at most twice
        if phi not in sources:
            sources[phi] = source
        elif sources[phi] is None or sources[phi] == source:
            continue
        else:
            sources[phi] = source = None
        waiting += [(user, source) for user in users.get(phi, ())]
    return sources
