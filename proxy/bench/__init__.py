"""`licorne bench`: how fast the scheduler is, in units of what this machine allows."""
