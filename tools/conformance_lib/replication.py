"""Records of the replication analysis: which values are the same on all devices, or in groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import BOOL, INT, TEXT, keys, mapping, optional_list, unknown_words
from conformance_lib.records import Record
from conformance_lib.source_names import SourceNames
from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

REPLICATION = "replication-analysis"
"""The pass name of these records."""

_ANNOTATIONS = "parameter_replicated_at_leaf_buffers"
_LOOPS = "loops_known_with_same_iterations"
_FLAGS = frozenset(("cross_partition_spmd", "partial_replication"))
_COUNTS = frozenset(("replica_count", "num_partitions"))
EXPECTED = keys(
    {"replicated": mapping(TEXT, BOOL)},
    {"groups": optional_list(optional_list(INT)), "options": mapping(TEXT, BOOL)},
    what="expectation",
)
_QUESTION = re.compile(r"([^{]+)(?:\{([\d,]*)\})?")


def check_replication(record: Record) -> list[str]:
    """Mismatches with the record. Raises RecordError for a field that has no meaning here."""
    record.check_fields()
    if "also_run" in record.fields:
        raise RecordError("nothing can run beside the replication analysis")
    if unknown := record.config.keys() - _COUNTS:
        raise RecordError(f"config {', '.join(sorted(unknown))} has no meaning here")
    for expected in record.expectations:
        if reason := EXPECTED.problem(expected):
            raise RecordError(reason)
    module = parse_module(record.hlo)
    for name, count in record.config.items():
        module.set_attribute(name, str(count))
    options = dict(record.fields.get("options", {}))
    names = SourceNames(module)
    for name, flags in options.pop(_ANNOTATIONS, {}).items():
        words = ",".join("true" if flag else "false" for flag in flags)
        _find(names, name).set_attribute("parameter_replication", f"{{{words}}}")
    _check_options(options)
    if _LOOPS in options:
        options[_LOOPS] = [_find(names, name.removeprefix("%")) for name in options[_LOOPS]]
    return [
        failure
        for expected in record.expectations
        for failure in _check(module, names, options, expected)
    ]


def _check_options(options: Mapping[str, Any]) -> None:
    if reason := unknown_words("option of the analysis", options, [*_FLAGS, _LOOPS, _ANNOTATIONS]):
        raise RecordError(reason)


def _check(
    module: Module, names: SourceNames, options: Mapping[str, Any], expected: Mapping[str, Any]
) -> Iterator[str]:
    own = expected.get("options", {})
    _check_options(own)
    analysis = ReplicationAnalysis(module, **{**options, **own})
    groups = expected.get("groups", ())
    for question, wanted in expected["replicated"].items():
        parts = _QUESTION.fullmatch(question)
        if parts is None:
            raise RecordError(f"'{question}' is no NAME or NAME{{i,j}}")
        index = tuple(map(int, filter(None, (parts[2] or "").split(","))))
        if analysis.is_replicated(_find(names, parts[1]), index, groups) != wanted:
            where = f" within {groups}" if groups else ""
            yield f"%{question} replicated{where}: expected {wanted}, found {not wanted}"


def _find(names: SourceNames, name: str) -> Instruction:
    definition = names.find(name)
    if definition is None:
        raise RecordError(f"%{name} is not in the module")
    return definition.instruction
