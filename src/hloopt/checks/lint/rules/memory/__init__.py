"""Rules about arguments, buffers and constants."""
