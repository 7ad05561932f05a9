"""The search for schedules that are better than those of the rules.

The rules make an order once, from the end to the beginning, and never look back. The search begins
with that order and tries small changes, thousands per second: `problem` has a computation as flat
arrays, `order` an order of it with its waiting (`timeline`) and memory, both kept up to date,
`moves` how an order may change, `proposals` which change to try, `walk` which to keep.
`module_search` shares memory and time out among the computations of a module, and checks by the
scheduler's own means what comes of it.
"""
