"""The choice of the node that is scheduled next."""
