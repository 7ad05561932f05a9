"""The replication report: findings, terminal page, annotations of the module."""
