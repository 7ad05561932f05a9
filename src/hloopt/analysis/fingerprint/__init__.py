"""Fingerprints of modules: equal hashes where `diff` finds no difference, in every process."""

from hloopt.analysis.fingerprint.differing import Fingerprints, differing_classes
from hloopt.analysis.fingerprint.modules import LEFT_OUT, fingerprint

__all__ = ["LEFT_OUT", "Fingerprints", "differing_classes", "fingerprint"]
