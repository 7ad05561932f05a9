"""`while-loop-all-reduce-code-motion`: a module per form of use that lets a collective leave."""
