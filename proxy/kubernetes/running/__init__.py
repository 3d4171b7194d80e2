"""What runs: the cache of the cluster, what each pod waits for, and the threads of both sides."""
