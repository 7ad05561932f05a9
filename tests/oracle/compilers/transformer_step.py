"""A small training step of a transformer on FSDP x TP devices, partitioned, as HLO text on stdout.

    python transformer_step.py FSDP TP

A process of its own, because XLA's flags say how many devices there are.
"""

from __future__ import annotations

import sys

import hloopt.jax
from hloopt.text import print_module
from testdata_lib.transformer import Config, lower_transformer

CONFIG = Config(
    layers=2,
    scan=True,
    compute_dtype="float32",
    batch=4,
    sequence=8,
    vocabulary=16,
    model=8,
    heads=2,
    head=4,
    hidden=16,
)


def main() -> None:
    fsdp, tp = map(int, sys.argv[1:])
    lowered = lower_transformer(CONFIG, fsdp=fsdp, tp=tp)
    is_whole = fsdp * tp == 1
    print(print_module(hloopt.jax.module(lowered, stage="before" if is_whole else "spmd")))


if __name__ == "__main__":
    main()
