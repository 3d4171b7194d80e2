"""The worlds that a plan runs in: threads, network, disks, workers, and how a run ends."""
