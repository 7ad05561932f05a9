"""Rematerialization: less memory for a scheduled module, by computing values again."""
