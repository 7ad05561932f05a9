"""Rules that every module obeys: structure, attributes, shapes."""

from hloopt.verifier.options import ANY_TARGET, VerifierOptions
from hloopt.verifier.verify import verify_changes, verify_module

__all__ = ["ANY_TARGET", "VerifierOptions", "verify_changes", "verify_module"]
