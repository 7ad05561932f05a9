"""Which computations and instructions of two modules belong together."""

from hloopt.analysis.matching.module_match import ModuleMatch, same_source_text

__all__ = ["ModuleMatch", "same_source_text"]
