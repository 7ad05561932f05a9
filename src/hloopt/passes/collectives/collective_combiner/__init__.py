"""Several collectives become one with several operands: fewer, larger messages."""
