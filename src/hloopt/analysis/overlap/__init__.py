"""What of its collectives a module hides behind computation: an estimate."""
