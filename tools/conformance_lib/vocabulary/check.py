"""Whether a record of a pass or an analysis is made of known words, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from conformance_lib.errors import RecordError
from conformance_lib.expectations import expectation_problem
from conformance_lib.forms import ANY, BOOL, INT, TEXT, Form, keys, mapping
from conformance_lib.records import Record
from conformance_lib.vocabulary.passes import pass_problem

CONFIG: Mapping[str, Form] = {
    "replica_count": INT,
    "num_partitions": INT,
    "use_spmd_partitioning": BOOL,
    "use_shardy_partitioner": BOOL,
    "allow_excess_precision": BOOL,
    "debug_options": mapping(TEXT, ANY),
}
"""The configuration of a module, by the names of the documents."""


def check_words(record: Record) -> None:
    """Raise RecordError for a word of a record that nothing here knows."""
    record.check_fields()
    config = keys({}, CONFIG, what="configuration")
    if record.config and (reason := config.problem(record.config)):
        raise RecordError(f"config: {reason}")
    steps = list(record.steps())
    for step in steps:
        if reason := pass_problem(step.pass_name, step.options):
            raise RecordError(reason)
    for expected in record.expectations:
        if reason := expectation_problem(expected):
            raise RecordError(reason)
