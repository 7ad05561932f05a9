"""The difference of two modules: findings, labels, terminal page and JSON."""
