"""The running parts: the cache of the cluster, the lives of pods, and the threads of both sides."""
