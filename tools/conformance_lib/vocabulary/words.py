"""Every word that the tool understands, with the module that does.

The values of options are words, too: a pass of ours takes its own, those of passes to come are
listed here, so that records that have them are known for what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance_lib import (
    attributes,
    mutate,
    patterns,
    records,
    replication,
    selector_syntax,
    shape_inference,
    verifier,
)
from conformance_lib import runner as runner  # registers the expectations
from conformance_lib.expectations import REGISTRY, WHEN
from conformance_lib.memory_space import units as memory_space_units
from conformance_lib.pipeliner import WORDS as PIPELINER_WORDS
from conformance_lib.predicates import PREDICATE_WORDS
from conformance_lib.scheduling import expectations as schedules
from conformance_lib.scheduling import unit_words, units
from conformance_lib.scheduling import words as scheduler
from conformance_lib.vocabulary import check, passes
from conformance_lib.vocabulary.memory_space_options import NESTED_WORDS
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.attributes.opcode_attributes import allowed_attributes
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.pass_framework.options import option_infos
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import ALIASES, PASSES, find_pass
from hloopt.verifier import VerifierOptions

OPTION_VALUES: Mapping[str, tuple[str, ...]] = {
    "call-inliner.override_policy": (
        *("default", "rules", "policy", "callee", "callee_root_opcode"),
        *("allow_inline", "prohibit_inline", "allow_ignore_frontend_attributes"),
    ),
    "call-splitter.direction": ("up", "down"),
    "collective-pipeliner.pipelining_direction": ("forward", "backward", "forward_sink"),
    "copy-insertion.alias_info": ("default", "gpu"),
    "hlo-memory-scheduler.algorithm": ("default", "list", "dfs", "post-order", "bfs"),
    "rematerialization.algorithm": ("always", "peak-priority"),
    "rematerialization.size_function": ("bytes", "pad-minor-to-64"),
    "rematerialization.compact_shape_function": ("swap-two-minor-dimensions", "identity"),
    "float-normalization.float_support": (
        *("low", "high", "operand", "output", "mixed", "operand_effectively_low"),
        *("opcodes", "operands"),
    ),
    "scaled-dot-rewriter.filter": ("operand_type_not",),
    "algebraic-simplifier.reshape_is_bitcast": ("never",),
    "gather_expander.mode": ("eliminate_all_gathers", "eliminate_simple_gathers"),
    "dot-merger.queue_id": ("else",),
    "verifier.instruction_can_change_layout": ("layout-assignment",),
    "verifier.supported_unbounded_dynamic_ops": ("all",),
    "legalize-scheduling-annotations.keep_sync_annotation": (
        *("all", "none", "only_opcodes", "except_opcodes"),
    ),
    "memory-space-assignment": tuple(NESTED_WORDS),
}


def known_words() -> dict[str, str]:
    """Each word with the module or the pass that gives it a meaning; the first one wins."""
    found: dict[str, str] = {}
    for home, words in _sources():
        for word in words:
            found.setdefault(word, home)
    return found


def _sources() -> Iterable[tuple[str, Iterable[str]]]:
    for key, known in REGISTRY.items():
        beside = (w for form in known.companions.values() for w in form.words)
        yield known.home, (key, *known.companions, *known.form.words, *beside)
    yield "conformance_lib.expectations", WHEN
    yield patterns.__name__, patterns.PATTERN.words
    syntax = (*selector_syntax.BASES, *selector_syntax.STEPS, *selector_syntax.COMPUTATIONS)
    yield selector_syntax.__name__, syntax
    yield attributes.__name__, attributes.VALUE.words
    yield records.__name__, (*records.FIELDS, *records.PHASES)
    yield check.__name__, check.CONFIG
    yield mutate.__name__, (*mutate.EDITS, *mutate.PARTS)
    yield verifier.__name__, (*verifier.EXPECTED.words, *VerifierOptions._fields)
    yield shape_inference.__name__, (*shape_inference.FIELDS, *shape_inference.WAYS)
    yield replication.__name__, replication.EXPECTED.words
    yield "conformance_lib.predicates", PREDICATE_WORDS
    yield "conformance_lib.pipeliner", PIPELINER_WORDS
    yield memory_space_units.__name__, memory_space_units.WORDS
    yield from _of_scheduler()
    for name, documented in passes.DOCUMENTED.items():
        yield name, (name, *documented.options, *documented.apis)
    yield passes.__name__, passes.GENERAL
    for name in PASSES:
        yield name, (info.name for info in option_infos(find_pass(name)))
    yield from OPTION_VALUES.items()
    yield "hloopt.pass_framework.registry", (*PASSES, *ALIASES, *PRESETS)
    yield "hloopt.ir.opcode", (*OPCODES, *ASYNC_SUGAR)
    yield "hloopt.ir.shapes.element_type", ELEMENT_TYPES
    yield "hloopt.ir.attributes", (name for op in Opcode for name in allowed_attributes(op))


def _of_scheduler() -> Iterable[tuple[str, Iterable[str]]]:
    for key, known in schedules.CHECKS.items():
        yield known.home, (key, *known.form.words)
    yield schedules.__name__, (*schedules.BESIDE, *schedules.ACROSS.words)
    yield schedules.__name__, (w for form in schedules.BESIDE.values() for w in form.words)
    forms = scheduler.FIELDS.items()
    yield scheduler.__name__, (word for name, form in forms for word in (name, *form.words))
    yield scheduler.__name__, (*scheduler.PASSES, *scheduler.PREDICATE_OPTIONS)
    yield scheduler.__name__, scheduler.PREDICATE.words
    yield unit_words.__name__, (*unit_words.UNIT_WORDS, *unit_words.RESOURCE_CASE.words)
    yield units.__name__, ("unit", *units.UNITS, *units.FUTURE_UNITS)
