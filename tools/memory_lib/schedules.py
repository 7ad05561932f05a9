"""Orders by XLA's memory schedulers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from hloopt.memory.schedulers import Algorithm, schedule_module
from hloopt.text import parse_module

ALGORITHMS = (Algorithm.DFS, Algorithm.BFS)
"""Those that XLA's orders are recorded of."""


def compare_schedules(oracle: Path) -> tuple[Counter[Algorithm], int]:
    """The number of computations each algorithm orders as XLA does, and how many there are."""
    right: Counter[Algorithm] = Counter()
    total = 0
    with (oracle / "memory_tests" / "schedules.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            module = parse_module(record["module"])
            total += len(record[ALGORITHMS[0]])
            for algorithm in ALGORITHMS:
                orders = schedule_module(module, algorithm).orders
                found = {c.name: [i.name for i in order] for c, order in orders.items()}
                right[algorithm] += sum(
                    found.get(name) == order for name, order in record[algorithm].items()
                )
    return right, total
