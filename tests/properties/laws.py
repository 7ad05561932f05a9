"""What each pass must do to any module, whatever its options."""

from __future__ import annotations

import re
from typing import Any

from tests.properties.consistency import assert_consistent

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from pass_sweep_lib.options import NEED_A_FLAT_CALL_GRAPH, NEED_A_SCHEDULE, OPTIONS

MIX_PRECISIONS = ("bfloat16-conversion-folding", "bfloat16-propagation")
"""Passes whose results are valid where operands may differ in precision."""
ALWAYS_CHANGE = ("copy-insertion",)
"""Passes that say that they changed the module whatever they did, as XLA's do."""
LEAVES_MORE_TO_DO = [
    # One transpose of a chain per run.
    *(("transpose-folding", options) for options in OPTIONS["transpose-folding"]),
    # What dead code read in full is not read any more, and what is low by then meets others.
    *(("bfloat16-propagation", options) for options in OPTIONS["bfloat16-propagation"]),
    # Each run moves things a trip further.
    *(("collective-pipeliner", options) for options in OPTIONS["collective-pipeliner"]),
    # Callers are visited before the callees whose effects and parameters go.
    ("dce", {"remove_cross_partition_collective_ops": True}),
    ("dce", {"use_call_analysis": True, "remove_dead_parameters_from_entry_computation": True}),
    # The first thing that applies to a loop is done, as in XLA.
    *(("simplify-while-loops", options) for options in OPTIONS["simplify-while-loops"]),
    # What is simplified behind one loop may let another go apart.
    *(("windowed-einsum-handler", options) for options in OPTIONS["windowed-einsum-handler"]),
    # Parts can be cut again.
    *(("collective-splitter", options) for options in OPTIONS["collective-splitter"]),
    # What is in alternate memory already has to stay there; the rest is placed around it.
    *(("memory-space-assignment", options) for options in OPTIONS["memory-space-assignment"]),
    # Operations that moved may let others move.
    *(("conditional-code-motion", options) for options in OPTIONS["conditional-code-motion"]),
    # What is ready first is taken in the order of the list, which the schedule then is.
    *(("hlo-memory-scheduler", {"algorithm": a}) for a in ("default", "list", "bfs")),
    ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
    # A branch that stops reading an input may have been the last to read another's output.
    ("simplify-conditional", {}),
    # The order it finds is the original order of the next run.
    *(("latency-hiding-scheduler", options) for options in OPTIONS["latency-hiding-scheduler"]),
    # They have as many iterations again.
    *(("memory-search", options) for options in OPTIONS["memory-search"]),
    *(("overlap-search", options) for options in OPTIONS["overlap-search"]),
    # Two calls of one computation each put their name in front of the other's.
    ("propagate-call-metadata", {}),
    # Each collective is looked at once, also where it was an operand of one that moved.
    *(
        ("while-loop-all-reduce-code-motion", options)
        for options in OPTIONS["while-loop-all-reduce-code-motion"]
    ),
    # Loops have trips left to be unrolled.
    *(("double-buffer-loop-unrolling", {"unroll_strategy": s}) for s in ("double-buffer", "auto")),
    # One permute of a loop is split at a time.
    ("collective-permute-decomposer", {"pipeline_parallelism_opt_level": "enable"}),
    # A fusion that takes over the group of what it fuses counts as a member from the next run on.
    ("legalize-scheduling-annotations", {"deannotate_unsupported_groups": True}),
    # Copies are made anew.
    ("copy-insertion", {}),
    ("copy-insertion", {"use_region_based_live_range_analysis": -1, "alias_info": "gpu"}),
    ("add-special-case-copies", {}),
    # New instructions may be recomputed in their turn.
    *(("rematerialization", options) for options in OPTIONS["rematerialization"]),
    # What it removed, dce has to take away.
    ("remove-unnecessary-copies", {}),
    # A merged dot may share an operand with others.
    *(("dot-merger", options) for options in OPTIONS["dot-merger"]),
    # A step at a time, so that others can simplify in between.
    *(("reshape-mover", options) for options in OPTIONS["reshape-mover"]),
    # One level of the tree per run.
    *(("tree-reduction-rewriter", options) for options in OPTIONS["tree-reduction-rewriter"]),
]
"""What need not be done after one run."""
MAY_REFUSE = (
    *("block-scaling-rewriter", "latency-hiding-scheduler", "legalize-scheduling-annotations"),
    *("check-no-data-dependency-in-scheduling-annotations", "memory-space-assignment"),
    *("memory-search", "overlap-search", "while-loop-residual-offloader"),
    "while-loop-transpose-sinking",
    *("gather-expander", "scatter-expander", "host-offload-legalize"),
)
"""Passes that end with an error where what a module asks for does not fit or cannot be met."""
NEEDS_EXPANDED_SCANS = ("bfloat16-propagation",)
"""Passes that refuse scans that are not associative."""
CHANGES_FEW = [
    *(
        (name, options)
        for name in (
            *("all-gather-dynamic-slice-simplifier", "batchnorm-expander", "slice-sinker"),
            "dynamic-index-splitter",
            *("convert-memory-placement-to-internal-annotations", "convolution-group-converter"),
            "host-offload-legalize",
            *("optimize-input-output-buffer-alias", "reduce-window-to-reduce-and-broadcast"),
            *("reduce-window-rewriter", "topk-decomposer", "windowed-einsum-handler"),
        )
        for options in OPTIONS[name]
    ),
    ("broadcast-canonicalizer", {}),
    ("dot-dimension-sorter", {}),
    ("dot-normalizer", {}),
    ("select-and-scatter-expander", {}),
    ("transpose-folding", {}),
    # XLA's unit tests have hardly any equal fusions, conditionals that are applied to elements, or
    # gathered broadcasts.
    ("computation-deduplicator", {"mark_fusion_duplications": True}),
    ("conditional-to-select", {}),
    # Hardly any has only conversions that a backend without mixed precision can do without.
    *(("bfloat16-conversion-folding", o) for o in OPTIONS["bfloat16-conversion-folding"][::2]),
    # Hardly any has work on other streams, on the host, or in groups.
    ("async-stream-attribute-wrapper", {}),
    ("explicit-collectives-group-async-wrapper", {}),
    ("explicit-stream-annotation-async-wrapper", {}),
    ("host-compute-asyncifier", {}),
    # And few that fit these.
    ("all-reduce-splitter", {}),
    ("collective-uncombiner", {}),
    *(("while-loop-residual-offloader", o) for o in OPTIONS["while-loop-residual-offloader"]),
    *(("combine-collectives", options) for options in OPTIONS["combine-collectives"]),
    ("reorder-convert-reduce-add", {"enable_reduce_scatter": True}),
    ("reorder-reduce-transpose", {}),
    ("all-gather-bcast-reorder", {}),
    # Few have logistic functions, dots of lower precision than their operands, or parts of sorts.
    ("logistic-expander", {}),
    ("result-caster", {}),
    ("topk-rewriter", {}),
]
"""What does something to few modules."""
CHANGE_NOTHING = ("check-no-data-dependency-in-scheduling-annotations",)
"""Passes that only refuse modules."""
NOT_IN_THE_CORPUS = (
    *("assume-gather-indices-in-bound-rewrite-to-copy", "composite-rewriter"),
    "while-loop-transpose-sinking",
)
"""Passes for what no module of XLA's unit tests has as it stands."""
SLOW = {"memory-search": 5, "overlap-search": 5}
"""Passes that take seconds, and of how many modules of the corpus one is enough."""
CASES = [(name, options) for name, choices in OPTIONS.items() for options in choices]
FULL = PrintOptions.formatted()._replace(keep_order=False)
"""Written anew as XLA orders it, nothing left out."""

Case = tuple[str, dict[str, Any]]
"""A pass and its options."""
GROUPS: list[list[Case]] = [CASES[start::12] for start in range(12)]
"""Cases that run on the same modules, which are read and printed once for a group."""


def names_of(cases: list[Case]) -> str:
    """The passes of a group, for the name of a test: `-k NAME` takes the group."""
    return ",".join(name for name, _ in cases)


def run(name: str, options: dict[str, Any], module: Module) -> bool:
    return create_pass(name, options).run(module, PassContext(name))


def prepare(name: str, module: Module) -> None:
    """Give `module` what the pass asks for."""
    if name in NEED_A_SCHEDULE and not module.is_scheduled:
        run("hlo-trivial-scheduler", {}, module)
    if name in NEED_A_FLAT_CALL_GRAPH:
        run("flatten-call-graph", {}, module)


def blocks(text: str) -> list[str]:
    """The parts of a printed module, without the numbers in names that readers make up.

    Lines are sorted unless the module is scheduled: else their order says nothing.
    """
    parts = [block.strip("\n") for block in _MADE_UP.sub(r"\1", text).split("\n\n")]
    if "is_scheduled=true" not in parts[0]:
        parts = ["\n".join(sorted(block.split("\n"))) for block in parts]
    return sorted(parts)


_MADE_UP = re.compile(r"\b(async_wrapped|async_param|call)\.\d+")


_Needs = tuple[bool, bool]
"""Whether a pass requires a schedule, and whether it requires a flat call graph."""


class Subject:
    """A module for passes to run on. Those that leave it alone leave it to the next.

    That they did leave it alone is seen once for all of them: printing takes longer than most
    passes do on a module that they find nothing in.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._before: dict[_Needs, str] = {}
        self._untouched: dict[_Needs, Module] = {}
        self._idle: dict[_Needs, list[Case]] = {}

    def take(self, name: str) -> tuple[Module, str]:
        """The module as the pass wants it, and how it prints."""
        needs = _needs(name)
        if needs not in self._untouched:
            self._untouched[needs] = self._fresh(name)
            # The module that they ran on is another by now.
            for idle, options in self._idle.get(needs, ()):
                run(idle, options, self._untouched[needs])
            self._settle(needs)
        return self._untouched.pop(needs), self._before[needs]

    def give_back(self, name: str, options: dict[str, Any], module: Module) -> None:
        """Hand over what a pass did nothing to, as it says."""
        needs = _needs(name)
        self._untouched[needs] = module
        self._idle.setdefault(needs, []).append((name, options))

    def assert_untouched(self) -> None:
        """See that passes that say that they did nothing did nothing."""
        for needs, ((name, _), *_) in list(self._idle.items()):
            self._untouched[needs] = self.take(name)[0]
            self._settle(needs)

    def _fresh(self, name: str) -> Module:
        module = parse_module(self._text)
        prepare(name, module)
        if _needs(name) not in self._before:
            self._before[_needs(name)] = print_module(module, FULL)
        return module

    def _settle(self, needs: _Needs) -> None:
        cases = self._idle.pop(needs, ())
        if not cases:
            return
        if print_module(self._untouched[needs], FULL) != self._before[needs]:
            del self._untouched[needs]
            for name, options in cases:
                module = self._fresh(name)
                run(name, options, module)
                is_same = print_module(module, FULL) == self._before[needs]
                assert is_same, f"{name} {options} changes the module and says that it does not"
            raise AssertionError(f"one of these changes the module after the others: {cases}")
        assert_consistent(self._untouched[needs])


def _needs(name: str) -> _Needs:
    return name in NEED_A_SCHEDULE, name in NEED_A_FLAT_CALL_GRAPH


def assert_laws(name: str, options: dict[str, Any], subject: Subject) -> bool:
    """Run a pass on a valid module and again on the result; whether it changed anything.

    That it left the module alone where it says so is for `subject.assert_untouched()` to see.
    """
    module, before = subject.take(name)
    version = module.version
    try:
        changed = run(name, options, module)
    except PassRefused as refusal:
        is_about_scan = name in NEEDS_EXPANDED_SCANS and "Non-associative scan" in str(refusal)
        if not (options.get("hard_memory_limit") or is_about_scan):
            raise
        return False  # the driver would take the module back; `test_schedules` looks at limits
    if not changed and module.version == version:
        assert name not in ALWAYS_CHANGE
        subject.give_back(name, options, module)
        return False
    after = print_module(module, FULL)
    if name in ALWAYS_CHANGE:
        assert changed
        changed = after != before
    else:
        assert changed == (after != before)
        # Under a hard limit other orders were tried on the module itself.
        assert changed == (module.version != version) or options.get("hard_memory_limit")
    assert_consistent(module)
    if not changed:
        return False
    assert verify_module(module, ANY_TARGET) == []
    again = print_module(parse_module(print_module(module)), FULL)
    assert blocks(again) == blocks(after)
    if (name, options) not in LEAVES_MORE_TO_DO:
        assert not run(name, options, module), "a second run finds something"
        assert print_module(module, FULL) == after
    return True


def assert_all_laws(cases: list[Case], text: str) -> None:
    """Run passes each on its own on a valid module; what fails says which pass it is of."""
    subject = Subject(text)
    for name, options in cases:
        try:
            assert_laws(name, options, subject)
        except Exception as error:
            error.add_note(f"{name} {options}")
            raise
    subject.assert_untouched()
