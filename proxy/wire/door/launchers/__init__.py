"""The launchers, which start, find and replace workers."""
