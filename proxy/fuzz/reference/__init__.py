"""A second scheduler, and runs of the engine `direct` with it."""
