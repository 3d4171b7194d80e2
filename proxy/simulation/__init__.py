"""Simulations on a virtual clock: what is simulated, the resource manager that plays it, and the report."""
