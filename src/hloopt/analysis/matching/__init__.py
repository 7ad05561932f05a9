"""Matching of the computations and instructions of two modules, as `diff` needs it."""

from hloopt.analysis.matching.module_match import ModuleMatch, same_source_text

__all__ = ["ModuleMatch", "same_source_text"]
