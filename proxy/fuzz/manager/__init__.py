"""The resource managers of simulated clusters: their records, actions and checks."""
