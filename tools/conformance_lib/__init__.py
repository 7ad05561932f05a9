"""Runs expectation tables (`*.jsonl`): HLO text, a pass, and facts that must hold afterwards.

The tables' README is the specification. What a record asks for and this package does not know
fails the record: nothing is skipped or ignored in silence.
"""
