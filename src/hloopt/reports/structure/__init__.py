"""Reports on call graphs, loops and the order of instructions: findings, terminal pages, JSON."""
