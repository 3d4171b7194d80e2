"""Room actors."""
