"""Files that lie beside HLO and are taken for it: what they are, and how to get HLO instead.

Asked only about what could not be read, so a sign need not tell the file from HLO text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hloopt.diagnostics import HloSyntaxError, Source, Span
from hloopt.patterns import pattern


class NotHlo(HloSyntaxError):
    """The file is known, and is not HLO."""

    code = "HLO016"


_LOWER = (
    "lower it first: in JAX `jax.jit(f).lower(…).compile().as_text()` is HLO, and "
    "`jax.jit(f).lower(…).as_text(dialect='hlo')` that before optimizations; "
    "for files see `hloopt explain HLO016`"
)
_BESIDE = "of a dump, the *.hlo.pb and the *.txt that begin with HloModule are HLO: give the folder"
_DUMP = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' writes HLO"


class _Kind(NamedTuple):
    """A kind of file, by any of its signs."""

    what: str
    help: str
    text: re.Pattern[str] | None = None
    """The beginning of a text, after white space and comments."""
    contains: re.Pattern[str] | None = None
    """Another mark of such a text."""
    data: re.Pattern[bytes] | None = None
    """The first bytes of other data."""
    name: re.Pattern[str] | None = None


_MLIR = pattern(
    r"[#!]\w+ = |\"?builtin\.module\b|\"?func\.func\b|module\b(?: @[\w.\-\"]+)?(?: attributes)? *\{"
)
_COMMENTS = pattern(r"\A(?:\s+|//[^\n]*)+")
_KINDS = (
    _Kind("StableHLO (MLIR)", _LOWER, _MLIR, pattern(r"\b(?:stablehlo|mhlo|chlo|vhlo|sdy)\.")),
    _Kind("StableHLO (MLIR bytecode)", _LOWER, data=pattern(rb"ML\xefR[\x00-\x7f]*StableHLO")),
    _Kind("MLIR bytecode", _LOWER, data=pattern(rb"ML\xefR")),
    _Kind(
        "MLIR",
        "hloopt reads what XLA compiles: HLO, as text or proto",
        _MLIR,
        pattern(r"^\s*(?:%[\w:]+ = )?\"?[a-z]\w*\.[a-z]\w*(?![\w.]*\s*=)|\bloc\(", re.M),
    ),
    _Kind("a jaxpr", _LOWER, pattern(r"(?:let \w+ = )?\{ *lambda\b")),
    _Kind(
        "a report of XLA on a module",
        f"{_BESIDE}; `hloopt memory` assigns buffers anew",
        pattern(
            r"BufferAssignment:|HloLiveRange\b|Total bytes used:|Memory Space: |Total bytes: |"
            r"\d{3,}: k[A-Z]\w+"
        ),
        name=pattern(
            r".*(?:-buffer-assignment(?:-values)?|-live-range|-memory-usage-report|"
            r"thunk[-_]sequence\w*)\.(?:txt|pb)"
        ),
    ),
    _Kind(
        "LLVM IR",
        _BESIDE,
        pattern(r"; ModuleID\b|source_filename = |target (?:datalayout|triple) = "),
    ),
    _Kind("PTX", _BESIDE, pattern(r"\.version \d")),
    _Kind(
        "a graph in DOT",
        _DUMP,
        pattern(r"(?:strict )?(?:di)?graph(?: +(?:\w+|\"[^\"]*\"))? *\{"),
        pattern(r"\blabel *=|\brankdir\b|;\s*$", re.M),
    ),
    _Kind("a page in HTML", _DUMP, pattern(r"<(?:!DOCTYPE|html|head|body|svg|!--|\?xml)", re.I)),
    _Kind("a list of XLA's options", _DUMP, pattern(r"xla_\w+: ")),
    _Kind(
        "a record of XLA about a compilation",
        _BESIDE,
        name=pattern(r".*\b(?:compile_options|topology|xplane|executable)\.pb"),
    ),
    _Kind(
        "a TensorFlow graph",
        "`tf.function(f, jit_compile=True).experimental_get_compiler_ir(…)(stage='optimized_hlo')` "
        "is HLO",
        pattern(r"(?:node|meta_graphs|graph_def) \{\s*(?:name|meta_info_def|node)\b"),
        data=pattern(rb"[\x08\n].{0,80}?\x12.(?:Placeholder|Const|NoOp|VarHandleOp)", re.S),
        name=pattern(r".*\bsaved_model\.pb(?:txt)?"),
    ),
    _Kind(
        "an HLO proto written as text",
        "`hloopt.proto.decode_text` reads it, and so do commands and `hloopt.load` from a file",
        pattern(r"(?:hlo_module|host_program_shape) \{|name: \"[^\"]*\"\s*entry_computation_name:"),
    ),
    _Kind("a profile for --profile", "give it beside a module", pattern(r"costs \{\s*name:")),
    _Kind(
        "a pipeline",
        "give it with -p, beside a module",
        pattern(r"(?:#[^\n]*\n\s*)*(?:name|description|target|passes): "),
        pattern(r"^passes:", re.M),
    ),
    _Kind("JSON", _DUMP, pattern(r"[\[{]\s*(?:\"|[\[{\]}])")),
    _Kind(
        "Python",
        _LOWER,
        pattern(r"#!.*python|\"\"\"|import \w+|from [\w.]+ import "),
    ),
    _Kind("a NumPy file", "give it with --input", data=pattern(rb"\x93NUMPY|PK\x03\x04")),
)


def recognized(source: Source) -> NotHlo | None:
    """The error for a text that is not HLO, where it is of a known kind, with the sign's place.

    O(length of the text).
    """
    text = source.text
    comments = _COMMENTS.match(text)
    begin = comments.end() if comments else 0
    for kind in _KINDS:
        sign = kind.text.match(text, begin) if kind.text is not None else None
        if sign and (kind.contains is None or kind.contains.search(text)):
            return _error(source.name, kind).at(Span(source, sign.start(), sign.end()))
    by_name = _by_name(source.name)
    return by_name and by_name.at(Span(source, begin, begin))


def recognized_data(name: str, data: bytes) -> NotHlo | None:
    """The same for data that are neither text nor an HLO proto."""
    for kind in _KINDS:
        if kind.data is not None and kind.data.match(data):
            return _error(name, kind)
    return _by_name(name)


def _by_name(name: str) -> NotHlo | None:
    for kind in _KINDS:
        if kind.name is not None and kind.name.fullmatch(name):
            return _error(name, kind)
    return None


def _error(name: str, kind: _Kind) -> NotHlo:
    return NotHlo(f"{name} is {kind.what}, not HLO", help=kind.help)
