"""A module as one page: its graph, text, schedule, memory and cost, linked."""
