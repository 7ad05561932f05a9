"""Reports on shardings: explained collectives, and layouts of values on the mesh."""
