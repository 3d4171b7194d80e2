"""Room proxy."""
