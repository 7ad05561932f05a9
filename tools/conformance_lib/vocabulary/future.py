"""Keys of `expect` that only components to come, or helpers of theirs, could answer.

A record that has one of them is skipped, and says which; a word that is in none of these forms
still fails it. The documents: MEMORY_SPACE_ASSIGNMENT.md, REMATERIALIZATION.md,
ALGSIMP_VOCABULARY.md, EVERYDAY_PASSES.md, README.md.
"""

from __future__ import annotations

from conformance_lib.expectations import declare
from conformance_lib.forms import (
    ANY,
    BOOL,
    BOUND,
    INT,
    NUMBER,
    TEXT,
    Form,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
)
from conformance_lib.patterns import PATTERN
from conformance_lib.selector_syntax import (
    COMPUTATION,
    LEAF_SELECTOR,
    NAME,
    OPCODE,
    SELECTOR,
)

_ANSWERS: Form = mapping(SELECTOR, BOOL)
_RANGE = row(INT, INT)
_TIMED = row(INT, INT, INT)

declare(
    __name__,
    {
        "non_negative": _ANSWERS,
        "simplified": _ANSWERS,
        "reported_originals": only(True),
        "warns": TEXT,
        "dynamic_index_tuple_elements": ANY,  # only the notes of records say what it is
    },
)

# -- chunks of alternate memory ------------------------------------------------------------------

_COUNTS = keys({}, {"prefetches": BOUND, "evictions": BOUND})
_SLICED_COPY = keys(
    {"at": SELECTOR},
    {
        "from": INT,
        "to": INT,
        "operand": PATTERN,
        "slices": list_of(list_of(_RANGE)),
        "bitcasted": BOOL,
        "contiguous_chunks": BOOL,
        "starts_after": SELECTOR,
        "done_before": SELECTOR,
        "starts_apart": BOOL,
        "one_start_between": ANY,
    },
)
_LOOP_PLAN = keys({"loop": _RANGE}, {"unsupported": BOOL})

declare(
    __name__,
    {
        "memory_plan_ok": only(True),
        "max_live_values": keys({"memory_space": INT, "n": BOUND}),
        "post_module_chunk_size": BOUND,
        "chunk_count": BOUND,
        "has_offset": list_of(SELECTOR),
        "no_offset": list_of(SELECTOR),
        "same_offset": list_of(row(SELECTOR, SELECTOR)),
        "different_offset": list_of(row(SELECTOR, SELECTOR)),
        "some_offset": keys({"opcode": OPCODE, "offset": INT}),
        "chunk_of_copy": mapping(SELECTOR, _RANGE),
        "scoped_chunks": mapping(NAME, _RANGE),
        "no_scoped_chunks": ANY,
        "scoped_sizes_follow_options": list_of(NAME),
        "repacked_colocations": list_of(optional_list(INT)),
        "sliced_copy": _SLICED_COPY,
        "follows_loop_plan": _LOOP_PLAN,
    },
)
declare(__name__, {"max_outstanding_copies": _COUNTS}, **{"in": COMPUTATION})

# -- components ----------------------------------------------------------------------------------

_USE = keys({"instruction": NAME, "operand": INT}, {"index": optional_list(INT)})
declare(
    __name__,
    {
        "prefetch_starts": optional_list(INT),
        "latest_prefetch_start": either(INT, keys({"max": INT})),
    },
    use=_USE,
    between=_RANGE,
)
_SECONDS = keys(
    {"instruction": NAME},
    {
        "operands_in_alternate_memory": optional_list(ANY),
        "output_in_alternate_memory": ANY,
        "compute": NUMBER,
        "memory": NUMBER,
        "overhead": NUMBER,
        "elapsed": NUMBER,
    },
)
_STEP = keys(
    {},
    {
        "add": list_of(NUMBER),
        "remove": INT,
        "violates": _RANGE,
        "has_enough": list_of(NUMBER),
        "has_enough_together": list_of(list_of(NUMBER)),
        "resources": list_of(NUMBER),
        "allocate": _TIMED,
        "allocate_same": _TIMED,
        "find": _TIMED,
        "find_same": _TIMED,
        "last_offset": INT,
        "remaining": list_of(INT),
        "is": BOOL,
    },
)
_RUNTIME_STEP = keys(
    {},
    {
        "done": NAME,
        "compute": NAME,
        "seconds": NUMBER,
        "operands_in_alternate_memory": optional_list(ANY),
        "reads_left": optional_list(ANY),
        "writes_left": optional_list(ANY),
    },
)
_LOOP_PREFETCHES = keys(
    {},
    {
        "count": BOUND,
        "some": list_of(
            keys(
                {},
                {
                    "value": NAME,
                    "first_use": either(BOUND, NAME),
                    "done_before": BOUND,
                    "start_after": BOUND,
                },
            )
        ),
        "same_start": list_of(NAME),
    },
)
_PLACED = keys({}, {"size": INT, "offset": INT, "start": INT})
declare(
    __name__,
    {
        "while_multiplier": mapping(TEXT, NUMBER),
        "seconds": _SECONDS,
        "exclusive_starts": optional_list(INT),
        "repacked": BOOL,
        "offsets": list_of(either(INT, only(None))),
        "slices_placed": mapping(TEXT, list_of(_PLACED)),
        "steps": list_of(_STEP),
        "runtime_seconds": BOUND,
        "runtime_seconds_without_copies": BOUND,
        "runtime_steps": list_of(_RUNTIME_STEP),
        "loop_seconds": BOUND,
        "loop_memory_used": BOUND,
        "loop_memory_used_at": either(list_of(BOUND), mapping(TEXT, BOUND)),
        "loop_allocations_in_alternate_memory": BOUND,
        "loop_uses_allocated_once": list_of(NAME),
        "loop_prefetches": _LOOP_PREFETCHES,
        "live_ranges": mapping(LEAF_SELECTOR, optional_list(_RANGE)),
        "same_buffer": list_of(row(LEAF_SELECTOR, LEAF_SELECTOR)),
    },
)
