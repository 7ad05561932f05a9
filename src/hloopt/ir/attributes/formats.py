"""Attribute text as XLA prints it by default, one function per kind of value.

Each takes the text of a value and returns the text XLA would print, or None where XLA leaves the
attribute out at that value. Malformed text raises HloSyntaxError. Results are remembered per
distinct text, except those of metadata and backend_config, which rarely repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attributes.values import (
    format_frontend_attributes,
    format_int_lists,
    format_ints,
    parse_bool,
    parse_frontend_attributes,
    parse_int,
    parse_int_lists,
    parse_ints,
    parse_names,
    parse_slices,
    parse_string,
    quote_string,
)
from hloopt.ir.attributes.values.strings import is_dictionary, quote_unless_dictionary
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

if TYPE_CHECKING:
    from hloopt.ir.attributes.values import Alias

Canonical = Callable[[str], str | None]


# -- numbers --------------------------------------------------------------------------------------


@memoized
def integer(text: str) -> str:
    """An integer, always printed."""
    return str(parse_int(text))


def integer_unless(default: int) -> Canonical:
    """An integer that is left out when it is `default`."""

    @memoized
    def canonical(text: str) -> str | None:
        value = parse_int(text)
        return None if value == default else str(value)

    return canonical


@memoized
def boolean(text: str) -> str:
    """A truth value, always printed."""
    return str(parse_bool(text)).lower()


@memoized
def true_only(text: str) -> str | None:
    """A truth value that is left out when false."""
    return "true" if parse_bool(text) else None


@memoized
def integers(text: str) -> str:
    """`{1,0}`, always printed."""
    return format_ints(parse_ints(text))


@memoized
def some_integers(text: str) -> str | None:
    """`{1,0}` that is left out when empty."""
    return integers(text) if parse_ints(text) else None


@memoized
def one_integer(text: str) -> str:
    """`{1}`: a list of exactly one integer."""
    if len(parse_ints(text)) != 1:
        raise malformed("one dimension {d}", text)
    return integers(text)


@memoized
def integer_lists(text: str) -> str:
    """`{{0,1},{1,0}}`, always printed."""
    return format_int_lists(parse_int_lists(text))


@memoized
def some_integer_lists(text: str) -> str | None:
    """`{{4},{2}}` that is left out when empty."""
    return integer_lists(text) if parse_int_lists(text) else None


@memoized
def pairs(text: str) -> str:
    """`{{0,1},{1,0}}`, every list with two integers."""
    if any(len(numbers) != 2 for numbers in parse_int_lists(text)):
        raise malformed("pairs {{source,target},…}", text)
    return integer_lists(text)


@memoized
def booleans(text: str) -> str:
    """`{true,false}`."""
    dense = compact(text)
    if not re.fullmatch(r"\{(?:(?:true|false)(?:,(?:true|false))*)?\}", dense):
        raise malformed("truth values {true,false,…}", text)
    return dense


_NUMBER = pattern(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-?inf|-?nan")


@memoized
def real(text: str) -> str:
    """A decimal number with at most six significant digits."""
    word = compact(text)
    if not _NUMBER.fullmatch(word):
        raise malformed("a number", text)
    return f"{float(word):g}"


def braces(parts: Iterable[str], separator: str = ",") -> str:
    """`{a,b}`."""
    return f"{{{separator.join(parts)}}}"


# -- words ----------------------------------------------------------------------------------------


def one_of(*words: str, any_case: bool = False, unset: str | None = None) -> Canonical:
    """One of `words`, or `unset`, which is left out; with `any_case` in capitals or not."""
    known = {word.lower() if any_case else word: word for word in words}
    if unset is not None:
        known[unset] = unset

    @memoized
    def canonical(text: str) -> str | None:
        word = compact(text)
        found = known.get(word.lower() if any_case else word)
        if found is None:
            hint = did_you_mean(word, known.values())
            raise HloSyntaxError(f"expected {_choice(words)}, found '{word}'", help=hint)
        return None if found == unset else found

    return canonical


def _choice(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_collective_mode = one_of(
    *("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id")
)


def ignored_collective_mode(text: str) -> None:
    """The mode of a collective: read, never printed."""
    _collective_mode(text)


def ignored_dimensions(text: str) -> None:
    """Dimensions that are read, never printed."""
    parse_ints(text)


_precision = one_of("default", "high", "highest", any_case=True)


@memoized
def precisions(text: str) -> str | None:
    """`{high,default}`, left out when all are default."""
    words = [_precision(name) or "" for name in parse_names(text)]
    return braces(words) if any(word != "default" for word in words) else None


# -- strings --------------------------------------------------------------------------------------


def ignored_string(text: str) -> None:
    """A string that is read, never printed."""
    parse_string(text)


@memoized
def string(text: str) -> str:
    """A quoted string, always printed."""
    return quote_string(parse_string(text))


def string_unless(default: str) -> Canonical:
    """A quoted string that is left out when it is `default`."""

    @memoized
    def canonical(text: str) -> str | None:
        value = parse_string(text)
        return None if value == default else quote_string(value)

    return canonical


_QUEUES = '"wait_on_operation_queues":[],'


def backend_config(text: str) -> str | None:
    """A dictionary as it stands, else a quoted string; an empty string is left out."""
    if is_dictionary(text):
        return text.replace(_QUEUES, "") if _QUEUES in text else text
    value = parse_string(text).replace(_QUEUES, "")
    return quote_unless_dictionary(value) if value else None


@memoized
def frontend_attributes(text: str) -> str | None:
    """The map sorted by name; left out when empty."""
    attributes = parse_frontend_attributes(text)
    return format_frontend_attributes(attributes) if attributes else None


# -- structures -----------------------------------------------------------------------------------


@memoized
def slices(text: str) -> str:
    """`{[0:4:2], [0:1:1]}`: all strides are printed if one is not 1."""
    parsed = parse_slices(text)
    strided = any(part.stride != 1 for part in parsed)
    return braces(
        (f"[{s.start}:{s.limit}" + (f":{s.stride}]" if strided else "]") for s in parsed), ", "
    )


@memoized
def window(text: str) -> str | None:
    """A window, parts at their default in every dimension left out."""
    from hloopt.ir.attributes.values import WindowDimension, parse_window

    dimensions = parse_window(text).dimensions
    if not dimensions:
        return None
    parts = [f"size={_by_x(d.size for d in dimensions)}"]
    defaults = WindowDimension()
    for name in ("stride", "pad", "lhs_dilate", "rhs_dilate", "reversal"):
        fields = ("pad_low", "pad_high") if name == "pad" else (name,)
        rows = [[getattr(d, field) for field in fields] for d in dimensions]
        if any(row != [getattr(defaults, field) for field in fields] for row in rows):
            if name == "reversal":
                name = "rhs_reversal"
            parts.append(f"{name}={_by_x('_'.join(map(str, row)) for row in rows)}")
    return braces(parts, " ")


def stated_window(text: str) -> str:
    """A window that is printed even without dimensions, as `{}`."""
    return window(text) or "{}"


def _by_x(values: Iterable[object]) -> str:
    return "x".join(map(str, values))


@memoized
def padding(text: str) -> str:
    """`1_1x0_1`, or with the interior for all dimensions as soon as one is not 0."""
    from hloopt.ir.attributes.values import parse_padding

    dimensions = parse_padding(text)
    interior = any(d.interior for d in dimensions)
    return _by_x(f"{d.low}_{d.high}" + (f"_{d.interior}" if interior else "") for d in dimensions)


@memoized
def dim_labels(text: str) -> str:
    """`b01f_01io->b01f`, without trailing unused dimensions."""
    from hloopt.ir.attributes.values import parse_dim_labels

    labels = parse_dim_labels(text)
    parts = (part.rstrip("?") for part in (labels.input, labels.kernel, labels.output))
    return "{}_{}->{}".format(*parts)


@memoized
def replica_groups(text: str) -> str:
    """Replica groups in the form they are written in, always printed."""
    from hloopt.ir.attributes.values import parse_replica_groups

    return parse_replica_groups(text).text


@memoized
def operand_aliasing(text: str) -> str | None:
    """`{{0}: (1, {})}`, left out when empty."""
    from hloopt.ir.attributes.values import parse_output_to_operand_aliasing

    return format_operand_aliasing(parse_output_to_operand_aliasing(text))


def format_operand_aliasing(aliases: Iterable[Alias]) -> str | None:
    """The value of `output_to_operand_aliasing` for these, None where there are none."""
    entries = [
        f"{format_ints(a.output_index)}: ({a.parameter}, {format_ints(a.parameter_index)})"
        for a in aliases
    ]
    return braces(entries, ", ") if entries else None


# -- references -----------------------------------------------------------------------------------


@memoized
def name(text: str) -> str:
    """The name of a computation, with `%`."""
    return "%" + parse_names(f"{{{text}}}")[0]


@memoized
def names(text: str) -> str:
    """`{%a, %b}`."""
    return braces((f"%{n}" for n in parse_names(text)), ", ")
