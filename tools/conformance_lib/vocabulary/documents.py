"""The words of the documents beside the tables.

The rule by which words are taken out of a document: of its *vocabulary sections*, every
`span in backticks`; of a span, every identifier (letters, digits, `_`, `-`), but not what stands
behind `%`, in a dotted path, or in quotation marks of more than one word, and no placeholder in
capitals such as SEL. Vocabulary sections are the documents WHOLE; in the others the sections with
a heading that HEADING matches, tables of options, and each line that speaks of an option.
A word that begins with `_` stands for the end of a name. NOT_WORDS are what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from conformance_lib.vocabulary.words import known_words

WHOLE = ("README.md", "ALGSIMP_VOCABULARY.md", "LATENCY_HIDING_SCHEDULER_TABLE.md")
HEADING = re.compile(
    r"vocabulary|\boptions\b|^\d*\.? *inputs|components with records|what the tables give"
    r"|reading the table|float support",
    re.I,
)
_OPTIONS = re.compile(r"^(?:\| option \|.*(?:\n\|.*)*|.*\b[Oo]ptions?\b.*)$", re.M)
_SECTION = re.compile(r"^#+ (.*)$", re.M)
_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_IGNORED = re.compile(r'%[\w.\-:]+|\w+(?:\.\w+)+(?:\.\w*)*|"[^"]*\s[^"]*"|<[^>]*>')
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*[A-Za-z0-9]")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*")


NOT_WORDS: Mapping[str, str] = {
    "stand for values, names or numbers of a record": (
        "attribute begin block bool computation cycles dotted expectations file function inputs "
        "key leaf level line lines major minor number old option original param part path per raw "
        "ref result run sizes source stem string text the us variant allowed null iteration"
    ),
    "examples of names": "extra0 negate0 remat LayoutConstraint TopK Suite",
    "parts of messages and of names": (
        "Call be graph insertion noop _rw_wrapper _scalarized fixed_seconds"
    ),
    "files, tables, tests and their parts": (
        "conformance_lib tools modules oracle shared jsonl md pb pbtxt _test pass_pairs "
        "pass_pairs_block_scaling block_scaling block_scaling_rewriter scaled_dot "
        "composite_scaled_dot cudnn_none composite_rewriter_test scaled_dot_rewriter_test "
        "async_collective_creator_test convert_async_collectives_to_sync_test "
        "gpu_hlo_schedule_test gpu_latency_hiding_scheduler_test hlo_memory_scheduler_test "
        "latency_hiding_scheduler_test legalize_scheduling_annotations_test "
        "p2p_schedule_preparation_test profile_guided_latency_estimator_test "
        "sol_gpu_cost_model_test sol_latency_estimator_test"
    ),
    "of XLA's interfaces, in no record": (
        "compile_many dnn_version_info xla_gpu_experimental_scaled_dot_with_triton "
        "xla_disable_while_loop_copies fdo_profile device_ids wait_on_operation_queues"
    ),
}
"""Texts in backticks that are not words of records."""


def sections(name: str, text: str) -> Iterator[str]:
    """The vocabulary sections of a document."""
    text = _FENCE.sub("", text)
    if name in WHOLE:
        yield text
        return
    headings = list(_SECTION.finditer(text))
    ends = [match.start() for match in headings[1:]] + [len(text)]
    for match, end in zip(headings, ends, strict=True):
        if HEADING.search(match[1]):
            yield text[match.end() : end]
    yield from (match[0] for match in _OPTIONS.finditer(text))


def words(section: str) -> Iterator[str]:
    """The words in the backticks of a section."""
    for span in _SPAN.findall(section):
        for word in _WORD.findall(_IGNORED.sub(" ", span)):
            if not _PLACEHOLDER.fullmatch(word):
                yield word


def homes(name: str, text: str) -> dict[str, str | None]:
    """The words of a document, sorted, each with what understands it; None where nothing does."""
    known = known_words()
    given = {word for section in sections(name, text) for word in words(section)}
    return {word: known.get(word) or _home_of_end(word, known) for word in sorted(given)}


def _home_of_end(word: str, known: Mapping[str, str]) -> str | None:
    if not word.startswith("_"):
        return None
    return next((home for name, home in known.items() if name.endswith(word)), None)


def unknown_words(name: str, text: str) -> set[str]:
    """The words of a document that the tool does not understand."""
    return {word for word, home in homes(name, text).items() if home is None}
