"""The report on the instructions that a selector selects: findings, and how they are shown."""
