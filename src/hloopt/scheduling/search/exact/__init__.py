"""The best order of a small computation, or a proof of how far an order is from it.

`relations` has what precedes what, `model` states a problem for the CP-SAT solver of OR-Tools,
`memory` its peak, `symmetry` which orders are alike, and `solve` asks the solver. OR-Tools is the
extra `solver`; it is imported where it is used.
"""
