"""XLA's own files for hlo-opt without a backend, run unchanged: results, or the missing pass."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import which

import pytest

from hloopt.golden import TestSettings, run_test
from hloopt.pass_framework.registry import PASSES

XLA_BUILDER = "no pass test-only-xla-builder"
"""It builds a module by C++ functions that are named in frontend attributes."""
RESULTS = {
    "algebraic_simplifier": "passed",
    "cholesky_expander": "no pass cholesky_expander",
    "generate_hlo_test_checks_test_input": "its CHECK lines are there to be replaced",
    "generate_hlo_test_checks_test_output": "passed",
    "hlo_opt_all_passes_smoke_test": "passed",
    "hlo_opt_dump": "passed",
    "hlo_opt_emit_proto": "passed",
    "hlo_opt_hlo_protobinary_to_hlotext": "the .pb beside it is not in the corpus",
    "hlo_opt_nonexistent_pass_failure": "passed",
    "hlo_opt_run_single_pass": "no pass test-only-foo2bar",
    "math_acos": XLA_BUILDER,
    "math_acosh": XLA_BUILDER,
    "math_asin": XLA_BUILDER,
    "math_asinh": XLA_BUILDER,
    "math_atan": XLA_BUILDER,
    "math_cosh": XLA_BUILDER,
    "math_igamma_grad_a": XLA_BUILDER,
    "math_next_after": XLA_BUILDER,
    "math_regularized_incomplete_beta": XLA_BUILDER,
    "matrix_get_matrix_diagonal_via_gather": XLA_BUILDER,
    "optimization_barrier_expander": "passed",
    "prng_scramble_philox_key": XLA_BUILDER,
    "rng_bit_generator_expander": "no pass rng-bit-generator-expander",
    "rng_expander": "no pass rng-expander",
    "tridiagonal_tridiagonal_solve": XLA_BUILDER,
}


@pytest.fixture(scope="session")
def files(shared: Path) -> dict[str, Path]:
    """The files by their ids."""
    with (shared / "corpus" / "lit_index.jsonl").open(encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    return {
        entry["id"]: shared / "corpus" / entry["copy"]
        for entry in entries
        if entry["hardware_independent"]
    }


def test_all_files_are_listed(files: dict[str, Path]) -> None:
    assert set(files) == set(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_a_file_gives_what_is_listed(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    text = files[name].read_text(encoding="utf-8")
    needs_shell = re.search("RUN:.*(xargs|ls )", text) is not None
    if needs_shell and which("bash") is None:
        pytest.skip("its RUN lines need bash")
    failure = run_test(files[name], tmp_path, settings=TestSettings(uses_shell=needs_shell))
    account = str(failure) if failure is not None else "passed"
    assert "does not take" not in account  # a flag
    missing = re.search(r"INVALID_ARGUMENT: Pass (\S+) not found", account)
    if missing is not None:
        account = f"no pass {missing[1]}"
    elif "hlo_opt_hlo_protobinary.pb: No such file" in account:
        account = "the .pb beside it is not in the corpus"
    elif "'Preexisting \"CHECK-LABEL:\" lines should be removed.'" in account:
        account = "its CHECK lines are there to be replaced"
    assert account == RESULTS[name]


def test_every_pass_has_a_test_in_xlas_form(root: Path) -> None:
    tests = (root / "tests" / "golden" / "hlo_opt").glob("*.hlotest")
    assert {test.stem for test in tests} == PASSES.keys()
