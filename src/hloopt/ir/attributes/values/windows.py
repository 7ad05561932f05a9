"""Windows, padding and the dimension labels of convolutions."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attributes.values.numbers import parse_int
from hloopt.ir.attributes.values.padding import parse_padding
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern


class WindowDimension(NamedTuple):
    """One dimension of a window; `reversal` is 1 where it is applied backwards."""

    size: int = 1
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1
    reversal: int = 0


class Window(NamedTuple):
    """A window over all dimensions of an array; without dimensions where the text is `{}`."""

    dimensions: tuple[WindowDimension, ...] = ()


_WINDOW_PART = pattern(r"([a-z_]+)=([\dx_-]+)(?: |$)")
_WINDOW_PARTS = {
    "size": "size",
    "stride": "stride",
    "lhs_dilate": "lhs_dilate",
    "rhs_dilate": "rhs_dilate",
    "rhs_reversal": "reversal",
}
_NO_PADDING = "0_0"


@memoized
def parse_window(text: str) -> Window:
    """`{size=2x2 stride=2x1 pad=0_0x1_0 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=1x0}`.

    Parts come in any order; a part that is left out has its default in every dimension.
    """
    dense = compact(text)
    if not (dense.startswith("{") and dense.endswith("}")):
        raise malformed("a window {size=…}", text)
    parts = _window_parts(dense[1:-1], text)
    if not parts:
        return Window()
    if "size" not in parts:
        raise HloSyntaxError(f"the window '{text}' has no size")
    rank = parts["size"].count("x") + 1
    for name, value in parts.items():
        if value.count("x") + 1 != rank:
            raise HloSyntaxError(
                f"the window '{text}' has {rank} sizes and {value.count('x') + 1} for '{name}'"
            )
    columns: dict[str, tuple[int, ...]] = {
        _WINDOW_PARTS[name]: _split_by_x(value) for name, value in parts.items() if name != "pad"
    }
    pads = parts.get("pad", "x".join([_NO_PADDING] * rank))
    if pads.count("_") != rank:
        raise HloSyntaxError(f"the window '{text}' has interior padding")
    padding = parse_padding(pads)
    if "reversal" in columns:
        columns["reversal"] = tuple(int(value == 1) for value in columns["reversal"])
    columns["pad_low"] = tuple(pad.low for pad in padding)
    columns["pad_high"] = tuple(pad.high for pad in padding)
    rows = zip(*columns.values(), strict=True)
    return Window(tuple(WindowDimension(**dict(zip(columns, row, strict=True))) for row in rows))


def _window_parts(dense: str, text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    position = 0
    while position < len(dense):
        part = _WINDOW_PART.match(dense, position)
        if part is None:
            raise malformed("a window {size=…}", text)
        name, value = part[1], part[2]
        if name != "pad" and name not in _WINDOW_PARTS:
            raise HloSyntaxError(
                f"a window has no '{name}' (in '{text}')",
                help=did_you_mean(name, (*_WINDOW_PARTS, "pad")),
            )
        if name in parts:
            raise HloSyntaxError(f"the window '{text}' has '{name}' twice")
        if name != "pad" and not _IS_BY_X.fullmatch(value):
            raise malformed(f"numbers like 2x1 for '{name}'", value)
        parts[name] = value
        position = part.end()
    return parts


_IS_BY_X = pattern(r"-?\d+|\d{1,18}(?:x\d{1,18})+")  # only one number alone can be negative


def _split_by_x(text: str) -> tuple[int, ...]:
    return tuple(map(parse_int, text.split("x")))


class ConvolutionLabels(NamedTuple):
    """The roles of the dimensions of input, kernel and output.

    One letter per dimension: `b` batch, `f` feature, `i` and `o` input and output feature of the
    kernel, a digit for that spatial dimension, `?` for one that takes no part.
    """

    input: str
    kernel: str
    output: str

    @property
    def input_batch_dimension(self) -> int:
        return self.input.index("b")

    @property
    def input_feature_dimension(self) -> int:
        return self.input.index("f")

    @property
    def input_spatial_dimensions(self) -> tuple[int, ...]:
        return _spatial(self.input)

    @property
    def kernel_input_feature_dimension(self) -> int:
        return self.kernel.index("i")

    @property
    def kernel_output_feature_dimension(self) -> int:
        return self.kernel.index("o")

    @property
    def kernel_spatial_dimensions(self) -> tuple[int, ...]:
        return _spatial(self.kernel)

    @property
    def output_batch_dimension(self) -> int:
        return self.output.index("b")

    @property
    def output_feature_dimension(self) -> int:
        return self.output.index("f")

    @property
    def output_spatial_dimensions(self) -> tuple[int, ...]:
        return _spatial(self.output)


def _spatial(labels: str) -> tuple[int, ...]:
    return tuple(labels.index(digit) for digit in sorted(filter(str.isdigit, labels)))


_DIM_LABELS = pattern(r"([0-9bf?]{2,})_([0-9io?]{2,})->([0-9bf?]{2,})")


@memoized
def parse_dim_labels(text: str) -> ConvolutionLabels:
    """`b01f_01io->b01f`: input, kernel, output."""
    match = _DIM_LABELS.fullmatch(compact(text))
    if match is None:
        raise malformed("dimension labels like b01f_01io->b01f", text)
    labels = ConvolutionLabels(match[1], match[2], match[3])
    spatial = sorted(filter(str.isdigit, labels.input))
    for part, letters in ((labels.input, "bf"), (labels.kernel, "io"), (labels.output, "bf")):
        if any(part.count(letter) != 1 for letter in letters):
            raise HloSyntaxError(
                f"'{part}' of the labels '{text}' needs one {letters[0]} and one {letters[1]}"
            )
        if sorted(filter(str.isdigit, part)) != spatial:
            raise HloSyntaxError(f"the parts of '{text}' differ in their spatial dimensions")
    if spatial != [str(i) for i in range(len(spatial))]:
        raise HloSyntaxError(f"the spatial dimensions of '{text}' are not 0, 1, … each once")
    return labels
