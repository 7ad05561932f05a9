"""What passes are, how they are named, chained, run and checked."""
