"""Programs with batch norms, convolutions in groups, pooling gradients, and top-k."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pass_answers_lib.writer import Value, Writer

_FLOATS = ("f32", "f32", "f32", "bf16", "f16", "f64")


def for_batch_norms(dice: Random) -> str:
    """Batch norms of all kinds over any feature dimension, some of them sharded."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick(_FLOATS)
        sizes = [writer.pick((1, 2, 3, 4)) for _ in range(writer.pick((1, 2, 3, 4)))]
        feature = writer.dice.randrange(len(sizes))
        vector = (sizes[feature],)
        x, *vectors = (writer.parameter(kind, s) for s in (sizes, vector, vector))
        attributes = [f"epsilon={writer.pick(('0.001', '1e-05', '0'))}", f"feature_index={feature}"]
        whole = Value("", kind, tuple(sizes), tuple(range(len(sizes)))[::-1])
        part = Value("", kind, vector, (0,))
        reads = writer.pick(((0, 1, 2), (0, 1, 2), (0,), (1,), (0, 2)))
        sharding = ""
        if writer.chance(0.15):
            sharding = "sharding={{maximal device=0}, {maximal device=0}, {maximal device=0}}"
        match writer.pick(("training", "grad", "inference")):
            case "training":
                operands = [x, *vectors]
                attributes.append(sharding)
                writer.several(
                    [whole, part, part], "batch-norm-training", operands, *attributes, read=reads
                )
            case "grad":
                mean, variance = vectors[1], writer.parameter(kind, vector)
                operands = [x, vectors[0], mean, variance, writer.parameter(kind, sizes)]
                attributes.append(sharding)
                writer.several(
                    [whole, part, part], "batch-norm-grad", operands, *attributes, read=reads
                )
            case _:
                operands = [x, *vectors, *(writer.parameter(kind, vector) for _ in range(2))]
                attributes.append("sharding={maximal device=0}" if sharding else "")
                writer.add(kind, sizes, "batch-norm-inference", operands, *attributes)
    return writer.text()


# -- convolutions ---------------------------------------------------------------------------------


def for_batch_groups(dice: Random) -> str:
    """Convolutions in batch groups."""
    return _convolutions(dice, ("batch", "batch", "batch", "feature", ""), ("f32", "bf16", "s32"))


def for_feature_groups(dice: Random) -> str:
    """Convolutions in feature groups, of types that XLA:CPU has no code of groups for."""
    return _convolutions(dice, ("feature", "feature", "feature", ""), ("s32", "f64", "s8", "c64"))


def _convolutions(dice: Random, groupings: Sequence[str], types: Sequence[str]) -> str:
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        grouping, groups = writer.pick(groupings), writer.pick((2, 2, 3))
        groups = groups if grouping else 1
        batch, inputs, outputs = (writer.pick((1, 2, 3)) for _ in range(3))
        if grouping == "batch":
            batch = groups * writer.pick((1, 1, 2))
        if grouping:
            outputs = groups * writer.pick((1, 1, 2))
        wide = inputs * groups if grouping == "feature" else inputs
        spatial = [writer.pick((1, 3, 4)) for _ in range(writer.pick((0, 1, 1, 2)))]
        kernel = [writer.dice.randint(1, min(size, 3)) for size in spatial]
        pad = [writer.pick(((0, 0), (0, 0), (1, 1), (0, 1))) for _ in spatial]
        strides = [writer.pick((1, 1, 2)) for _ in spatial]
        apart = [writer.pick((1, 1, 2)) for _ in spatial]
        base = [writer.pick((1, 1, 1, 2)) for _ in spatial]
        results = []
        for d, size in enumerate(spatial):
            room = (size - 1) * base[d] + 1 + sum(pad[d]) - (kernel[d] - 1) * apart[d] - 1
            if room < 0:
                apart[d], room = 1, (size - 1) * base[d] + 1 + sum(pad[d]) - kernel[d]
            results.append(room // strides[d] + 1)
        numbers = "012"[: len(spatial)]
        window = "".join(
            f"{key}={'x'.join(each)} "
            for key, each in (
                ("size", map(str, kernel)),
                ("stride", map(str, strides)),
                ("pad", (f"{low}_{high}" for low, high in pad)),
                ("lhs_dilate", map(str, base)),
                ("rhs_dilate", map(str, apart)),
            )
        )
        sides = [
            ("bf", [batch, wide, *spatial]),
            ("io", [inputs, outputs, *kernel]),
            ("bf", [batch // (groups if grouping == "batch" else 1), outputs, *results]),
        ]
        labels, shapes = [], []
        for letters, sizes in sides:
            found = dict(zip(letters + numbers, sizes, strict=True))
            label = "".join(writer.shuffled(letters + numbers))
            labels.append(label)
            shapes.append([found[letter] for letter in label])
        kind = writer.pick(types)
        writer.add(
            kind,
            shapes[2],
            "convolution",
            [writer.parameter(kind, sizes) for sizes in shapes[:2]],
            f"window={{{window.strip()}}}" if spatial else "",
            f"dim_labels={labels[0]}_{labels[1]}->{labels[2]}",
            f"{grouping}_group_count={groups}" if grouping else "",
        )
    return writer.text()


# -- pooling --------------------------------------------------------------------------------------


def for_pooling(dice: Random) -> str:
    """Select-and-scatters with any windows."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick((*_FLOATS, "s32", "u8"))
        sizes = [writer.pick((1, 2, 4, 5)) for _ in range(writer.pick((1, 2, 3)))]
        windows = [writer.dice.randint(1, min(size, 3)) for size in sizes]
        strides = [writer.pick((1, 2, 2)) for _ in sizes]
        pad = [
            (writer.pick((0, 0, 1)), writer.pick((0, 0, 1))) if window > 1 else (0, 0)
            for window in windows
        ]
        counts = [
            (size + sum(p) - w) // s + 1
            for size, p, w, s in zip(sizes, pad, windows, strides, strict=True)
        ]
        window = f"size={'x'.join(map(str, windows))} stride={'x'.join(map(str, strides))}"
        window += f" pad={'x'.join(f'{low}_{high}' for low, high in pad)}"
        if writer.chance(0.2):
            init = writer.parameter(kind, ())
        else:
            init = writer.constant(kind, writer.pick((0, 0, 1)))
        order = writer.pick(("GE", "GE", "LE", "GT", "LT"))
        select = writer.binary("compare", kind, f"direction={order}", result="pred")
        scatter = writer.binary(writer.pick(("add", "add", "maximum")), kind)
        operands = [writer.parameter(kind, sizes), writer.parameter(kind, counts), init]
        attributes = f"window={{{window}}}", f"select={select}", f"scatter={scatter}"
        value = writer.add(kind, sizes, "select-and-scatter", operands, *attributes)
        if writer.chance(0.3):
            writer.add(kind, sizes, "negate" if kind != "u8" else "copy", [value])
    return writer.text()


# -- the largest ----------------------------------------------------------------------------------


def for_topk(dice: Random) -> str:
    """Top-k of arrays of any rank, values or positions of it read, or both."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick(("f32", "f32", "bf16", "f16", "s32", "u8", "s8", "f64", "f8e5m2"))
        sizes = [writer.pick((1, 2, 5, 9)) for _ in range(writer.pick((1, 1, 2, 3)))]
        k = writer.dice.randint(1, sizes[-1])
        kept = (*sizes[:-1], k)
        order = tuple(range(len(sizes)))[::-1]
        results = [Value("", each, kept, order) for each in (kind, "s32")]
        reads = writer.pick(((0, 1), (0, 1), (0,), (1,)))
        x = writer.parameter(kind, sizes)
        largest = writer.pick(("true", "true", "false"))
        found = writer.several(results, "topk", [x], f"k={k}", f"largest={largest}", read=reads)
        if writer.chance(0.2):
            writer.add(found[0].type, kept, "copy", [found[0]])
    return writer.text()
