"""Write a folder of dumps of a made-up run: hosts, modules, stages, named as XLA names them.

    python tools/dump_folder.py /scratch/dump --files 2000

Texts have the sizes of those of real training steps: 0.1 to 1.3 MB, 1 GB in 2,000 files. All hosts
of a pipeline stage dump the same, but `PLANTED_HOST` has other groups in one all-reduce of module
`PLANTED_MODULE` from the pass `PLANTED_PASS` on. The other pipeline stage runs other programs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

PIPELINE_STAGES = 2
HOSTS = 8
"""Hosts of all pipeline stages together."""
PASSES = tuple(
    f"{pipeline}.after_{after}.before_{before}"
    for pipeline, names in (
        ("simplification", ("algsimp", "reshape-mover", "constant_folding", "while-simplifier")),
        ("spmd-partitioner", ("call-inliner", "shardy-xla", "spmd-partitioning", "dce")),
        ("layout", ("layout-assignment", "shape-canonicalizer", "copy-insertion", "cse")),
        ("collectives", ("all-gather-combiner", "all-reduce-combiner", "async-creator", "dce")),
        ("fusion", ("fusion", "fusion-wrapper", "priority-fusion", "horizontal-fusion", "dce")),
        ("scheduling", ("latency-hiding-scheduler", "rename")),
    )
    for after, before in zip(names, (*names[1:], "pipeline-end"), strict=True)
)
STAGES = len(PASSES) + 2
PLANTED_HOST = "stage1-rank5"
PLANTED_MODULE = 1
PLANTED_PASS = 9
PLANTED_GROUPS = "{{0,1,3,2},{4,5,6,7}}"
_GROUPS = "{{0,1,2,3},{4,5,6,7}}"
_LAYERS = (80, 120, 190, 270, 350, 460, 600, 760, 950, 1250)
"""Layers of modules, by turns."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2000, help="about so many")
    arguments = parser.parse_args()
    count, size = write_folder(arguments.folder, arguments.files)
    print(f"{count:,} files, {size / 1e9:.2f} GB")


def write_folder(folder: Path, files: int) -> tuple[int, int]:
    """Write at least `files` files; their number and bytes."""
    modules = max(PLANTED_MODULE + 1, -(-files // (HOSTS * STAGES)))
    count = size = 0
    for host in range(HOSTS):
        stage = host * PIPELINE_STAGES // HOSTS
        name = f"stage{stage}-rank{host}"
        place = folder / name
        place.mkdir(parents=True)
        for module in range(modules):
            planted = name == PLANTED_HOST and module == PLANTED_MODULE
            for label, text in dumps(module, stage, planted=planted):
                path = place / f"module_{module * 2:04}.jit_step_{module}.{label}.txt"
                path.write_text(text, encoding="utf-8")
                count += 1
                size += len(text)
    return count, size


def dumps(module: int, stage: int, *, planted: bool) -> Iterator[tuple[str, str]]:
    """The stages of one compilation: their names, and texts."""
    labels = ("before_optimizations", *(f"{n:04}.{each}" for n, each in enumerate(PASSES)))
    for number, label in enumerate((*labels, "gpu_after_optimizations")):
        groups = PLANTED_GROUPS if planted and number > PLANTED_PASS else _GROUPS
        is_end = number == STAGES - 1
        yield label, _text(module, stage, number, groups, is_scheduled=is_end)


def _text(module: int, stage: int, number: int, groups: str, *, is_scheduled: bool) -> str:
    """A chain of layers; each pass removes the copies of some more of them."""
    layers = _LAYERS[module % len(_LAYERS)]
    schedule = "is_scheduled=true, " if is_scheduled else ""
    kind = "tanh" if stage else "logistic"
    lines = [
        f"HloModule jit_step_{module}, {schedule}num_partitions=8\n",
        "%sum (x: f32[], y: f32[]) -> f32[] {",
        "  %x = f32[] parameter(0)",
        "  %y = f32[] parameter(1)",
        "  ROOT %z = f32[] add(%x, %y)",
        "}\n",
        f"ENTRY %main.{module} (p: f32[64,64]) -> f32[64,64] {{",
        "  %v0 = f32[64,64]{1,0} parameter(0), sharding={replicated}",
    ]
    last = "v0"
    copies = layers - layers * number // STAGES
    for layer in range(layers):
        scope = f"jit(step_{module})/transformer/layer_{layer}/block"
        where = f"stack_frame_id={layer % 50 + 1}"
        parts = [
            (f"dot.{layer}", f"dot(%{last}, %v0), lhs_contracting_dims={{1}}, "
             "rhs_contracting_dims={0}", "dot_general"),
            (f"mul.{layer}", f"multiply(%dot.{layer}, %{last})", "mul"),
            (f"act.{layer}", f"{kind}(%mul.{layer})", kind),
            (f"sub.{layer}", f"subtract(%act.{layer}, %dot.{layer})", "sub"),
            (f"ar.{layer}", f"all-reduce(%sub.{layer}), channel_id={layer + 1}, "
             f"replica_groups={groups if layer == 7 else _GROUPS}, use_global_device_ids=true, "
             "to_apply=%sum", "psum"),
            (f"add.{layer}", f"add(%ar.{layer}, %{last})", "add"),
        ]  # fmt: skip
        lines += [
            f'  %{name} = f32[64,64]{{1,0}} {body}, metadata={{op_name="{scope}/{op}" {where}}}'
            for name, body, op in parts
        ]
        last = f"add.{layer}"
        if layer < copies:
            lines.append(f"  %copy.{layer} = f32[64,64]{{1,0}} copy(%{last})")
            last = f"copy.{layer}"
    lines += [f"  ROOT %out = f32[64,64]{{1,0}} negate(%{last})", "}\n"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
