"""Reports on call graphs, loops and reachability."""
