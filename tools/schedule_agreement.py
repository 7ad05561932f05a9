#!/usr/bin/env python3
"""Compare our latency-hiding scheduler with that of XLA:GPU, as its answers are recorded.

    tools/schedule_agreement.py --shared DIR [--module TEXT] [--setting TEXT] [--verbose]

Each recorded module was scheduled by XLA under many settings. Ours schedules the same input: with
the fixed-size estimator where XLA had it (`sol_off…`), else with XLA's costs as a table. Compared
are the order of every scheduled computation, the statistics of the result and its memory peak,
and where XLA's steps were recorded what was ready at each, and which rule decided each comparison.
Prints a table; exits 1 if a bar is not met, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from schedule_lib.comparison import Result, compare_setting, settings_of
from schedule_lib.traces import TraceComparison, compare_trace, traced_settings

_FIXED, _TABLE = "fixed sizes", "cost table"
_BARS = {_FIXED: 0.95, _TABLE: 0.9}


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--module", default="", help="only modules whose name contains this")
    parser.add_argument("--setting", default="", help="only settings whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="show every setting")
    options = parser.parse_args(arguments)
    folder = options.shared / "oracle" / "gpu"
    if not folder.is_dir():
        parser.error(f"no folder {folder}")
    results: list[Result] = []
    traces: list[TraceComparison] = []
    for sweep in sorted(folder.glob("*/sweep")):
        if options.module not in sweep.parent.name:
            continue
        for setting in settings_of(sweep):
            if options.setting in setting:
                result = compare_setting(sweep, setting)
                results.append(result)
                if options.verbose or result.differences:
                    print(_line(result))
        traces += [compare_trace(sweep, s) for s in traced_settings(sweep) if options.setting in s]
    is_met = _summary(results)
    return 0 if _traces_agree(traces) and is_met else 1


def _line(result: Result) -> str:
    state = "; ".join(result.differences) or "equal"
    return f"{result.module:<46}{result.setting:<24}{result.seconds:7.3f} s  {state}"


def _summary(results: Iterable[Result]) -> bool:
    is_met = True
    for kind, bar in _BARS.items():
        chosen = [r for r in results if r.is_fixed == (kind == _FIXED)]
        orders = sum(r.computations for r in chosen)
        if not orders:
            continue
        same = sum(r.same_orders for r in chosen)
        enough = same >= bar * orders
        is_met &= enough
        verdict = "ok" if enough else "MISSED"
        print(f"{kind}: {same} of {orders} orders equal, at least {bar:.0%}: {verdict}")
        figures = sum(r.figures for r in chosen)
        print(f"{kind}: {sum(r.same_figures for r in chosen)} of {figures} statistics equal")
        near = sum(r.near_figures for r in chosen)
        enough = near == figures
        is_met &= enough
        verdict = "ok" if enough else "MISSED"
        print(f"{kind}: {near} of {figures} statistics within 0.5 %, all wanted: {verdict}")
    return is_met


def _traces_agree(traces: list[TraceComparison]) -> bool:
    steps, same = sum(t.steps for t in traces), sum(t.same for t in traces)
    comparisons = sum(t.comparisons for t in traces)
    verdict = "ok" if steps == same else "MISSED"
    print(f"explanations: {same} of {steps} steps ({comparisons} comparisons) equal: {verdict}")
    for trace in traces:
        if trace.first_difference:
            print(trace.first_difference)
    return steps == same


if __name__ == "__main__":
    sys.exit(main())
