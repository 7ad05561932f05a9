"""The engine of the latency-hiding scheduler.

From the ground up: `resources` says what is asynchronous, what it occupies, and what programs ask
for; `graph` what an order must respect; `memory` what it keeps alive. `state` is what changes while
one computation is scheduled, `rules` choose the next node by it, `engine` goes from node to node,
and `search` looks for a better order. `config` has the options of them all.
"""
