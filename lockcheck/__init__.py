"""Room lockcheck."""
