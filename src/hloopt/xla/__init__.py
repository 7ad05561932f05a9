"""Running HLO on real XLA:CPU, where jaxlib (extra `xla`) is installed.

The other engine beside `hloopt.interpreter`, with the same contract. It stands apart because XLA
reads text: it needs `hloopt.text`, which the interpreter does not know.
"""
