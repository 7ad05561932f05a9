"""Write batch normalization, its training and its gradient as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import split_dictionaries
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal_values import to_f32
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.rewriting.rules import Builder, Match, RulePass, op, rule
from hloopt.passes.rewriting.rules.build import sized


class _Normalization:
    """The values that all three forms need, in the place of one of them."""

    def __init__(self, match: Match) -> None:
        self.build = match.build
        self.root = match.root
        self.x = match.x
        self.feature = int(match.root.attributes["feature_index"])
        self.others = [d for d in range(self.x.shape.rank) if d != self.feature]
        kind = self.x.shape.type_name
        epsilon = match.root.attributes["epsilon"]
        self._epsilon = self.build.scalar(to_f32(float(epsilon), epsilon), array_shape(kind))
        self._epsilons: dict[Instruction, Instruction] = {}

    def spread(self, per_feature: Instruction) -> Instruction:
        """A value for each feature, as large as the activation."""
        return self.build.broadcast(per_feature, (self.feature,), self.x.shape)

    def filled(self, scalar: Instruction, shape: Shape) -> Instruction:
        return self.build.broadcast(scalar, (), shape)

    def inverse_deviation(self, variance: Instruction) -> Instruction:
        """1 / sqrt(variance + epsilon)."""
        return self.build.unary("rsqrt", self.with_epsilon(variance))

    def with_epsilon(self, variance: Instruction) -> Instruction:
        """The variance plus epsilon, which the attribute has in single precision."""
        if variance not in self._epsilons:
            self._epsilons[variance] = self.filled(self._epsilon, variance.shape)
        return self.build.add(variance, self._epsilons[variance])

    def count(self) -> Instruction:
        """The number of elements of each feature, by the dynamic sizes of the activation."""
        build, s32 = self.build, array_shape("s32")
        product = build.scalar(1, s32)
        for dimension in self.others:
            size = build.make(
                "get-dimension-size", self.x, shape=s32,
                attributes={"dimensions": f"{{{dimension}}}"},
            )  # fmt: skip
            product = build.multiply(size, product)
        return build.convert(product, self.x.shape.type_name)

    def totals(self, *values: Instruction) -> list[Instruction]:
        """The sums of values of the activation's shape over all but the feature."""
        build, kind = self.build, self.x.shape.type_name
        zero = build.scalar(0, array_shape(kind))
        adder = Builder(build.computation).scalar_computation("add", kind)  # its own, as in XLA
        shape = sized(self.x.shape, [self.x.shape.dimensions[self.feature]])
        return [build.reduce(each, zero, self.others, adder, shape) for each in values]

    def result(self, *elements: Instruction) -> Instruction:
        """The tuple, or value, in the place of the old instruction, with its annotations."""
        (found, *rest) = elements
        if rest:
            found = self.build.make("tuple", *elements)
        self._annotate(found)
        return found

    def _annotate(self, result: Instruction) -> None:
        metadata = self.root.attributes.get("metadata")
        sharding = self.root.attributes.get("sharding")
        of_activation, of_others = _shardings(sharding)
        for made in self.build.made:
            if metadata is not None:
                made.set_attribute("metadata", metadata)
            if sharding is None:
                continue
            is_large = made.shape.dimensions == self.x.shape.dimensions
            mine = sharding if made is result else of_activation if is_large else of_others
            made.set_attribute("sharding", mine)


def _shardings(text: str | None) -> tuple[str, str]:
    """The sharding of the activation, and that of what has other shapes."""
    if text is None:
        return "", ""
    parts = split_dictionaries(canonical_sharding(text)) or [text]
    return parts[0], parts[0] if parts[0].startswith("{maximal") else "{replicated}"


@rule(
    op("batch-norm-training", "x", "scale", "offset"), option="rewrite_training_op",
    floats="finite", dynamic=True, moves_control=True,
)  # fmt: skip
def training(match: Match) -> Instruction:
    """mean = Σx/n, variance = Σx²/n - mean²; (x - mean) / sqrt(variance + ε) * scale + offset."""
    norm, build, x = _Normalization(match), match.build, match.x
    total, squares = norm.totals(x, build.multiply(x, x))
    count = norm.count()
    mean = build.divide(total, norm.filled(count, total.shape))
    mean_square = build.divide(squares, norm.filled(count, total.shape))
    variance = build.subtract(mean_square, build.multiply(mean, mean))
    centered = build.subtract(x, norm.spread(mean))
    unit = build.multiply(centered, norm.inverse_deviation(norm.spread(variance)))
    scaled = build.multiply(unit, norm.spread(match.scale))
    return norm.result(build.add(scaled, norm.spread(match.offset)), mean, variance)


@rule(
    op("batch-norm-inference", "x", "scale", "offset", "mean", "variance"),
    option="rewrite_inference_op", floats="finite", dynamic=True, moves_control=True,
)  # fmt: skip
def inference(match: Match) -> Instruction:
    """s = scale / sqrt(variance + ε); x * s + (offset - mean * s)."""
    norm, build = _Normalization(match), match.build
    factor = build.multiply(match.scale, norm.inverse_deviation(match.variance))
    shift = build.subtract(match.offset, build.multiply(match.mean, factor))
    scaled = build.multiply(match.x, norm.spread(factor))
    return norm.result(build.add(scaled, norm.spread(shift)))


@rule(
    op("batch-norm-grad", "x", "scale", "mean", "variance", "gradient"), option="rewrite_grad_op",
    floats="finite", dynamic=True, moves_control=True,
)  # fmt: skip
def gradient(match: Match) -> Instruction:
    """The gradients of activation, scale and offset."""
    norm, build, gradient = _Normalization(match), match.build, match.gradient
    centered = build.subtract(match.x, norm.spread(match.mean))
    along, of_offset = norm.totals(build.multiply(gradient, centered), gradient)
    variance = norm.spread(match.variance)
    count = norm.count()
    steepness = build.multiply(norm.spread(match.scale), norm.inverse_deviation(variance))
    factor = build.divide(steepness, norm.filled(count, match.x.shape))
    whole = build.multiply(gradient, norm.filled(count, match.x.shape))
    rest = build.subtract(whole, norm.spread(of_offset))
    lean = build.divide(build.multiply(norm.spread(along), centered), norm.with_epsilon(variance))
    of_activation = build.multiply(factor, build.subtract(rest, lean))
    of_scale = build.multiply(along, norm.inverse_deviation(match.variance))
    return norm.result(of_activation, of_scale, of_offset)


@register(
    "batchnorm-expander",
    preserves="finite",
    xla=XlaPass("BatchNormExpander", "xla/service/batchnorm_expander.h"),
)
class BatchNormExpander(RulePass):
    """Replace batch normalization, its training and its gradient by arithmetic and reductions.

    Each kind has its option. The number of elements is counted by get-dimension-size, so that
    dynamic sizes count as they are. Metadata goes to all that is made, and shardings: that of the
    activation to what has its shape, its device or `replicated` to the rest. Rounding differs, and
    infinities may become NaN. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        rewrite_training_op: bool = option(False, "replace batch-norm-training")
        rewrite_inference_op: bool = option(False, "replace batch-norm-inference")
        rewrite_grad_op: bool = option(False, "replace batch-norm-grad")

    options: Options
    rules = (training, inference, gradient)
    max_sweeps = 1
