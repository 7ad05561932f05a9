"""XLA's own files for hlo-opt with a backend, run unchanged with the compilers of the wheels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.golden import TestSettings, run_test

pytestmark = [pytest.mark.oracle]

NEWER = "its CHECK lines are of a newer XLA than 0.10.2"
NO_DESCRIPTION = "there is no description of its GPU"
RESULTS = {
    "backends.gpu.tests.vectorization": "passed",
    "bitcast-convert": "passed",
    "bitcast_unsupported_expand": "it reads XLA's log, which a child process has",
    "calling_convention": NEWER,
    "cpu_hlo": "passed",
    "cpu_hlo_pass": "jaxlib's way by StableHLO makes a reshape of the transpose that is to fuse",
    "cpu_llvm": "passed",
    "dot_bf16": NO_DESCRIPTION,
    "gpu_hlo_buffers": NEWER,
    "gpu_hlo_pass": "passed",
    "gpu_hlo_ptx": NEWER,
    "kernel_reuse": NEWER,
    "layout_assignment_a100": NO_DESCRIPTION,
    "layout_assignment_v100": NO_DESCRIPTION,
    "list_passes": "XLA does not tell which passes a backend has",
    "pad_to_static": "passed",
    "pdl": NO_DESCRIPTION,
    "reduce-precision": "passed",
    "rng_get_and_update_state": "passed",
    "run_pass_with_input": "passed",
    "scaled_dot_online_quantization": "it calls triton_test_correctness",
    "scaled_dot_online_quantization_bitcast": "it calls triton_test_correctness",
    "single_instruction": NO_DESCRIPTION,
    "slice_to_dynamic": "passed",
    "sorting": "passed",
    "sub_byte_collectives": NEWER,
    "triton_calling_convention": "passed",
    "triton_naming": "passed",
    "triton_tdm_elemwise": "passed",
    "zero_clamp_abs_index": "passed",
}
"""Of each file that asks for a backend: `passed`, or why it does not."""
VALUES = {"GPU": "h100_sxm", "PTX": "PTX"}


@pytest.fixture(scope="module")
def files(shared: Path) -> dict[str, Path]:
    """The files that ask for a backend, by their ids."""
    with (shared / "corpus" / "lit_index.jsonl").open(encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    return {
        entry["id"]: shared / "corpus" / entry["copy"]
        for entry in entries
        if any("--platform" in run for run in entry["runs"])
    }


def test_all_files_are_listed(files: dict[str, Path]) -> None:
    assert set(files) == set(RESULTS)


@pytest.mark.parametrize("name", [name for name in RESULTS if RESULTS[name] == "passed"])
def test_a_file_passes(
    name: str,
    files: dict[str, Path],
    tmp_path: Path,
    plugin: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HLOOPT_XLA_PLUGIN", plugin[1])
    failure = run_test(files[name], tmp_path, settings=TestSettings(parameters=VALUES))
    assert failure is None, str(failure)
