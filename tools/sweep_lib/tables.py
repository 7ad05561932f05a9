"""Tables of the outcomes of sweeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def share_table(outcomes: Counter[str], total: str, equal: str, more: Mapping[str, str]) -> str:
    """The share of equal ones in Markdown, a row for each scene, settings first, and one for all.

    `total`, `equal` and the values of `more` are outcomes, counted as `scene: outcome` for a scene;
    the keys of `more` are the heads of their columns.
    """
    end = f": {total}"
    scenes = sorted(
        {key.removesuffix(end) for key in outcomes if key.endswith(end)},
        key=lambda scene: (not scene.startswith("setting "), scene),
    )
    heads = ["programs with", total, equal, "share", *more]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for scene in [*scenes, ""]:
        prefix = f"{scene}: " if scene else ""
        count, right = outcomes[prefix + total], outcomes[prefix + equal]
        numbers = [f"{count:,}", f"{right:,}", f"{right / count if count else 1.0:.2%}"]
        numbers += [f"{outcomes[prefix + what]:,}" for what in more.values()]
        lines.append(f"| {' | '.join([scene or '**all**', *numbers])} |")
    return "\n".join(lines)
