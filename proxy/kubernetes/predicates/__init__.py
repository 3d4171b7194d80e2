"""Whether a pod may run on a node: the filters of Kubernetes, as pure functions."""
