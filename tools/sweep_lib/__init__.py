"""What sweeps over numbered inputs share: processes, limits, a state on disk, a report."""
