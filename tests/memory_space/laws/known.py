"""What breaks laws of memory space assignment as it is: cases by reason."""

from __future__ import annotations

KNOWN: dict[str, tuple[str, ...]] = {
    "the checker takes elements of a loop that always hold one value for two": (
        "transformer_scan_8dev.after_spmd_partitioning.hlo, 1 KiB",
        "transformer_scan_8dev.after_spmd_partitioning.hlo, 16 KiB, few copies",
        "program 30",
    ),
    "what a loop passes on has one place before the loop, and another in it or at its end": (
        "transformer_scan_8dev.after_optimizations.hlo.gz, 1 MiB, operations converted",
        "transformer_scan_8dev.after_spmd_partitioning.hlo, 1 MiB, operations converted",
        "program 19",
    ),
    "a call in a loop: not looked into yet": (
        "transformer_scan_8dev.before_optimizations.hlo, 64 KiB, repacked",
        "transformer_scan_8dev.before_optimizations.hlo, 1 MiB, operations converted",
    ),
}
"""The cases have to break a law; one that does not any more goes out of the list."""
