"""XLA:CPU's partitioner alone, on HLO as it is: `python -m sharding_lib.alone ORACLE < BEFORE`.

`ORACLE` is the folder of `xla_oracle.py`, which hands HLO to XLA without StableHLO between. Run
with XLA_FLAGS that make the devices. Prints the module behind the pass.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hloopt.compilers.partitioning import PARTITIONER
from hloopt.text import parse_module
from oracle_script import oracle_script

_BEFORE = {"sharding-propagation", "shardy-xla"}
"""Passes that run before it on programs for several devices only."""


def main(oracle: Path) -> None:
    """Partition the module on standard input."""
    text = sys.stdin.read()
    server = oracle_script(oracle, "xla_oracle")._Server()
    server.names = server.pass_names() | _BEFORE
    devices = parse_module(text).num_partitions
    steps = server.passes(text, False, [PARTITIONER], 1, devices, "direct", True)
    print(next(step["after"] for step in steps if step.get("pass") == PARTITIONER))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
