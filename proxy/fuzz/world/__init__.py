"""The worlds of plans: threads, network, disks, workers, and the end of a run."""
