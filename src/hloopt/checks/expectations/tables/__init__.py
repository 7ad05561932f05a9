"""The tables that expectations are about, by what they hold."""
