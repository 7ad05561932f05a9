"""While loops: what counts their trips, how many they make, and what passes through them."""
