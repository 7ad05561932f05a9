"""Our passes in the places that XLA:GPU runs its own, with the options it gives them there."""

from __future__ import annotations

from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import ALIASES, PASSES

TARGET = "h100_sxm"
_ALL_COLLECTIVES = (
    *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute"),
    *("ragged_all_to_all", "reduce_scatter"),
)
_NORMALIZATION = "float-normalization"
_OPTIONS = {
    "async-collective-creator": ",".join(f"convert_{each}=true" for each in _ALL_COLLECTIVES),
    "copy-insertion": "alias_info=gpu",
    "dot-merger": "max_size_to_merge=64MiB",
    "latency-hiding-scheduler": (
        f"preset=xla-gpu,cost_model=sol,target={TARGET},device_memory_size=67954383257"
    ),
    "legalize-scheduling-annotations": "keep_sync_annotation=gpu-gemms",
    **{name: f"target={TARGET}" for name in PRESETS if name.startswith(f"{_NORMALIZATION}-")},
}
"""The options that a pass has at all of its places."""
_OPTIONS_AT = {
    ("computation-deduplicator", "post-fusion-simplification-pipeline optimization"): (
        "mark_fusion_duplications=true"
    ),
    ("cse", "fusion"): "is_layout_sensitive=true",
    ("cse", "hlo normalization"): "is_layout_sensitive=true",
    ("cse", "post-layout_assignment"): "is_layout_sensitive=true",
    ("reshape-mover", "reshape_mover_after_conv_canonicalization"): (
        "reshape_of_1d_broadcast_is_cheap=true"
    ),
}
"""By pass and XLA's pipeline."""
_FOR_PARTITIONS = {"dce": "remove_cross_partition_collective_ops=true"}
"""For programs that are compiled as SPMD, where collectives have no side effects in XLA."""
_INSTANCES = {
    "collective-pipeliner-forward": (
        "collective-pipeliner"
        "{should_process=[reduce-scatter],unique_channel_id=true,trip_analysis=xla}"
    ),
}
"""Names that XLA gives to instances of a pass of ours, under the flags it has by default."""
LEFT_OUT = {
    "algsimp": "its options differ from pipeline to pipeline, and do not stand in dumps",
    "collectives-schedule-linearizer": (
        "XLA runs it on programs whose convolutions are tuned while they are compiled"
    ),
    "float-normalization-bf16 in conv_canonicalization": (
        "it is for convolutions of cuDNN and products alone"
    ),
}
"""Passes that are not compared, and why."""


def pass_at(name: str, pipeline: str, before: str = "") -> str | None:
    """The pass of ours that does what XLA's of a name does in a pipeline, as a text of passes; None
    where there is none. `before`: the program that it is given."""
    if name in _INSTANCES:
        return _INSTANCES[name]
    key = name.replace("_", "-")
    key = ALIASES.get(key, key)
    is_ours = (key in PASSES or key in PRESETS) and name != "float_normalization"  # a pipeline
    if not is_ours or key in LEFT_OUT or f"{key} in {pipeline}" in LEFT_OUT:
        return None
    options = _OPTIONS_AT.get((key, pipeline), _OPTIONS.get(key, ""))
    if key in _FOR_PARTITIONS and "num_partitions=" in before.partition("\n")[0]:
        options = _FOR_PARTITIONS[key]
    return f"{key}{{{options}}}" if options else key


def name_of(passes: str) -> str:
    """The name of a pass in the form that `pass_at` has."""
    return passes.partition("{")[0]
