"""Services of every engine: clocks with timers, the link to a resource manager, the log, and interrupts."""
