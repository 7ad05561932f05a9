"""The report on an instruction and what is around it: findings, and how they are shown."""
