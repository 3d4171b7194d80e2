"""Resource managers: how they register, pause, stop and come back, and how their callbacks are called."""
