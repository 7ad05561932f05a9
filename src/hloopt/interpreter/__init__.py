"""Running HLO with NumPy: whole programs, on all the devices they are for."""
