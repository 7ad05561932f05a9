"""Resources that are taken already, and can be given back."""
