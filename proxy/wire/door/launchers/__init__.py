"""How workers are started, found and replaced."""
