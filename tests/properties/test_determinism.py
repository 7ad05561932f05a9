"""Output does not depend on the hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.properties.strategies.modules import sample

_RUN_EVERYTHING = """
import json, sys
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import PASSES, create_pass
from hloopt.text import PrintOptions, parse_module, print_module

needed = {
    "memory-search": {"target": "h100_sxm", "iterations": 2, "memory_limit": 64},
    "overlap-search": {"target": "h100_sxm", "iterations": 2},
    "rematerialization": {"memory_limit_bytes": 0, "recompute": True},
}
for text in json.load(sys.stdin):
    module = parse_module(text)
    for name in PASSES:
        context = PassContext(name)
        if "cop" in name:  # copy insertion refuses shared callees
            create_pass("flatten-call-graph").run(module, PassContext())
        changed = create_pass(name, needed.get(name)).run(module, context)
        print(changed, context.remarks, context.statistics)
        print(print_module(module), print_module(module, PrintOptions.default()))
"""


def test_every_hash_seed_gives_the_same_bytes() -> None:
    texts = json.dumps(sample(20)).encode()
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _RUN_EVERYTHING],
            input=texts,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "424242")
    ]
    assert len(outputs[0]) > 10_000
    assert outputs[0] == outputs[1] == outputs[2]
