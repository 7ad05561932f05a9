"""Folders of dumps with XLA's names, made of a few small modules."""

from __future__ import annotations

from pathlib import Path

STEP = """\
HloModule jit_step, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (p: f32[8,8], q: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0), metadata={op_name="p"}
  %q = f32[8,8]{1,0} parameter(1), metadata={op_name="q"}
  %dot.1 = f32[8,8]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot"}
  %copy.1 = f32[8,8]{1,0} copy(%dot.1)
  %all-reduce.1 = f32[8,8]{1,0} all-reduce(%copy.1), channel_id=1, replica_groups={{0,1,2,3}},
    use_global_device_ids=true, to_apply=%sum, metadata={op_name="jit(step)/psum"}
  ROOT %add.1 = f32[8,8]{1,0} add(%all-reduce.1, %p)
}
"""
WITHOUT_COPY = STEP.replace("  %copy.1 = f32[8,8]{1,0} copy(%dot.1)\n", "").replace(
    "all-reduce(%copy.1)", "all-reduce(%dot.1)"
)
COMBINED = WITHOUT_COPY.replace("%all-reduce.1", "%all-reduce.7")
"""The same program; only a name differs."""
END = WITHOUT_COPY.replace("num_partitions=4", "is_scheduled=true, num_partitions=4")
OTHER_GROUPS = "{{0,1,3,2}}"

BEGIN = "before_optimizations"
PASSES = (
    ("0000.simplification.after_pipeline-start.before_algsimp", STEP),
    ("0001.simplification.after_algsimp.before_dce", WITHOUT_COPY),
    ("0002.collectives.after_all-reduce-combiner.before_dce", COMBINED),
)
LAST = "cpu_after_optimizations"


def write_dump(
    folder: Path,
    *,
    id: int = 3,
    name: str = "jit_step",
    begin: str = STEP,
    passes: tuple[tuple[str, str], ...] = PASSES,
    end: str | None = END,
) -> None:
    """The dumps of one compilation, and a file beside them; without `end` it never finished."""
    folder.mkdir(parents=True, exist_ok=True)
    stages = [(BEGIN, begin), *passes]
    if end is not None:
        stages.append((LAST, end))
    for stage, text in stages:
        text = text.replace("HloModule jit_step", f"HloModule {name}")
        (folder / f"module_{id:04}.{name}.{stage}.txt").write_text(text, encoding="utf-8")
    (folder / f"module_{id:04}.{name}.debug_options").write_text("xla_x: 1\n", encoding="utf-8")


def changed_from(number: int, before: str, after: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Passes and the end with a text replaced in all dumps from one on."""
    passes = tuple(
        (stage, text.replace(before, after) if place >= number else text)
        for place, (stage, text) in enumerate(PASSES)
    )
    return passes, END.replace(before, after)
