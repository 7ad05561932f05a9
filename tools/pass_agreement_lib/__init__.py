"""Passes of ours beside those of XLA:GPU on the corpus of XLA's own tests."""
