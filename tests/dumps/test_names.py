"""The names of files of dumps."""

from __future__ import annotations

import pytest

from hloopt.dumps.names import FileKind, Phase, kind_of, parse_name

STAGES = [
    ("module_0001.jit_f.before_optimizations.txt", "jit_f", Phase.BEGIN, "before_optimizations"),
    ("module_0001.before_optimizations.txt", "", Phase.BEGIN, "before_optimizations"),
    ("1732700000.module_0001.jit_f.before_optimizations.hlo.pb.gz", "jit_f", Phase.BEGIN,
     "before_optimizations"),
    ("module_12345.jit_f.cpu_after_optimizations.txt", "jit_f", Phase.END,
     "cpu_after_optimizations"),
    ("module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt", "jit_f", Phase.END,
     "sm_9.0a_gpu_after_optimizations"),
    ("module_0001.jit_f.gfx942_gpu_after_optimizations.txt", "jit_f", Phase.END,
     "gfx942_gpu_after_optimizations"),
    ("module_0001.jit_f.after_optimizations.txt", "jit_f", Phase.END, "after_optimizations"),
    ("module_0001.jit_f.cpu_after_optimizations.top_level.html", "jit_f", Phase.END,
     "cpu_after_optimizations"),
    ("module_0001.jit_f.after_spmd_partitioner.txt", "jit_f", Phase.NAMED,
     "after_spmd_partitioner"),
    ("module_0001.jit_f.1.2.0007.p.after_a.before_b.txt", "jit_f.1.2", Phase.PASSES,
     "p.after_a.before_b"),
    ("module_0001.jit_f.0007.p.after_pipeline-start.before_b.dot", "jit_f", Phase.PASSES,
     "p.after_pipeline-start.before_b"),
    ("module_0001.jit_f.10007.copy-insertion.after_adding_copies.txt", "jit_f", Phase.PASSES,
     "copy-insertion.after_adding_copies"),
    ("module_0001.jit_after_x.cl_42.before_optimizations.txt", "jit_after_x.cl_42", Phase.BEGIN,
     "before_optimizations"),
    ("module_0001.jit_thunk_profile.before_optimizations.txt", "jit_thunk_profile", Phase.BEGIN,
     "before_optimizations"),
    ("module_0001.jit_f.0003.p.after_thunk_config.before_autotuner.txt", "jit_f", Phase.PASSES,
     "p.after_thunk_config.before_autotuner"),
    ("module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt", "jit_f", Phase.END,
     "cpu_after_optimizations"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "module", "phase", "label"), STAGES)
def test_a_name_tells_module_and_stage(name: str, module: str, phase: Phase, label: str) -> None:
    found = parse_name(name)
    assert found is not None
    assert found.stage is not None
    assert (found.module, found.stage.phase, found.stage.label) == (module, phase, label)


KINDS = {
    "module_0001.jit_f.before_optimizations.txt": FileKind.TEXT,
    "module_0001.jit_f.before_optimizations.txt.gz": FileKind.TEXT,
    "module_0001.jit_f.before_optimizations.hlo": FileKind.TEXT,
    "module_0001.jit_f.before_optimizations.hlo.pb": FileKind.PROTO,
    "module_0001.jit_f.before_optimizations.hlo.pbtxt": FileKind.PROTO,
    "module_0001.jit_f.before_optimizations.dot": FileKind.GRAPH,
    "module_0001.jit_f.cpu_after_optimizations.top_level.html": FileKind.GRAPH,
    "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt": FileKind.BUFFERS,
    "module_0001.jit_f.sm_9.0a_gpu_after_optimizations-live-range.txt": FileKind.BUFFERS,
    "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.txt": FileKind.MEMORY,
    "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb": FileKind.MEMORY,
    "module_0001.jit_f.thunk_sequence.txt": FileKind.THUNKS,
    "module_0001.jit_f.thunk_sequence_after_thunk_passes.txt": FileKind.THUNKS,
    "module_0001.jit_f.thunk_metadata.txt": FileKind.THUNKS,
    "module_0001.jit_f.debug_options": FileKind.OPTIONS,
    "module_0001.jit_f.config.pbtxt": FileKind.OPTIONS,
    "module_0001.jit_f.gpu_target_config.pbtxt": FileKind.OPTIONS,
    "module_0001.jit_f.autotune_results.pbtxt": FileKind.TUNING,
    "module_0001.jit_f.priority_fusion_dump.txt": FileKind.LOG,
    "module_0001.jit_f.16.ir-no-opt.ll": FileKind.CODE,
    "module_0001.jit_f.profile.3.ptx": FileKind.CODE,
    "module_0001.jit_f.obj-file.x_kernel_module.o": FileKind.CODE,
    "module_0001.jit_f.notes.txt": FileKind.OTHER,
    "00.input_module.mlir": FileKind.MLIR,
    "compile_options.pb": FileKind.OPTIONS,
    "tpu_comp_env.txt": FileKind.OPTIONS,
    "notes.txt": FileKind.OTHER,
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_name_tells_the_kind(name: str, kind: FileKind) -> None:
    found = parse_name(name)
    assert (found.kind if found else kind_of(name)) is kind


def test_stages_are_in_the_order_of_time() -> None:
    names = [
        "module_1.f.before_optimizations.txt",
        "module_1.f.0002.p.after_a.before_b.txt",
        "module_1.f.0010.p.after_a.before_b.txt",
        "module_1.f.10010.p.after_a.before_b.txt",
        "module_1.f.after_spmd_partitioner.txt",
        "module_1.f.cpu_after_optimizations.txt",
    ]
    stages = [found.stage for name in names if (found := parse_name(name)) and found.stage]
    stages.reverse()
    assert sorted(stages) == stages[::-1]


def test_names_of_others_are_no_names_of_modules() -> None:
    assert parse_name("step.hlo") is None
    assert parse_name("submodule_0001.f.before_optimizations.txt") is None
