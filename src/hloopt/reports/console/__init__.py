"""Text for terminals: tables, styles, units, wrapped prose, coloured differences."""
