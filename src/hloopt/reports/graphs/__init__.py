"""The graph of a module for other tools: Graphviz and Model Explorer."""
