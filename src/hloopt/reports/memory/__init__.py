"""The memory report: its model, terminal page, HTML page, trace, advice and comparison."""
