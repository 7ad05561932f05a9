"""The colours of pages, for light and dark screens: all text on them has a contrast of 4.5 or more.

Styles and scripts know them as variables of CSS: `--ink`, and for what is filled `--c1` and the
colour of text on it, `--on-c1`.
"""

from __future__ import annotations

from collections.abc import Mapping

SERIES = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
"""Fills for what is told apart by its rank: eight hues, which differ in lightness as well, so that
people who confuse red and green can tell them apart."""
OTHER, CALL, WAIT, FLIGHT = "other", "call", "wait", "flight"
"""Fills for the rest, for loops and calls around other work, for waiting, for what is in flight."""
FILLS = (*SERIES, OTHER, CALL, WAIT, FLIGHT)

LIGHT: Mapping[str, str] = {
    **{"page": "#ffffff", "ink": "#1b1f24", "dim": "#5c6068", "line": "#c6cad1"},
    **{"good": "#14692b", "bad": "#b80d1c", "notice": "#fff3cd", "on-notice": "#4d3a00"},
    **{"c1": "#5b86e8", "c2": "#e5680f", "c3": "#5f2bb8", "c4": "#187d91"},
    **{"c5": "#d63fa8", "c6": "#4a2008", "c7": "#1c1f5e", "c8": "#86925e"},
    **{OTHER: "#63625f", CALL: "#dfe3e8", WAIT: "#cc1020", FLIGHT: "#1b7a33"},
}
DARK: Mapping[str, str] = {
    **{"page": "#15181c", "ink": "#e8eaed", "dim": "#a3a9b3", "line": "#454b54"},
    **{"good": "#7fd39b", "bad": "#ff8f8a", "notice": "#3d3100", "on-notice": "#ffe28a"},
    **{"c1": "#5c7cfa", "c2": "#ebaa33", "c3": "#b98cff", "c4": "#22c3a6"},
    **{"c5": "#f2bdf5", "c6": "#a5632a", "c7": "#566a96", "c8": "#cfe05a"},
    **{OTHER: "#9c979a", CALL: "#343a43", WAIT: "#fe5d58", FLIGHT: "#aef0cf"},
}


def palette_css() -> str:
    """The variables; on paper those of light screens."""
    return (
        f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not(.print) {{ {_variables(DARK)} }} }}\n"
    )


def _variables(colors: Mapping[str, str]) -> str:
    texts = {f"on-{name}": ink_on(colors[name]) for name in FILLS}
    return " ".join(f"--{name}: {color};" for name, color in {**colors, **texts}.items())


def ink_on(fill: str) -> str:
    """Black or white, whichever is easier to read on a colour: at least 4.5 to 1 for any."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, fill))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours `#rrggbb`, from 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
