"""Rules that every module obeys: structure, attributes, shapes."""

from hloopt.verifier.verify import VerifierOptions, verify_changes, verify_module

__all__ = ["VerifierOptions", "verify_changes", "verify_module"]
