"""Room proxy.simulation."""
