"""The resource managers of simulated clusters: what they know, do and check."""
