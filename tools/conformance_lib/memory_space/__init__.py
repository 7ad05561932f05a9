"""Records of the components of memory space assignment."""
