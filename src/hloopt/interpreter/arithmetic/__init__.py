"""Functions of arrays that NumPy lacks, or has with other rules; they know no instructions."""
