"""What a cluster is, and how it decides where each ask runs.

The model owns queues, applications, nodes, limits and the scheduling cycle. It knows nothing of threads,
wall clocks, logs, sockets or `si.v1`: it gets time, timers and callbacks from one object, its host
(`state/host`). It imports no other room. Start with `cluster`, `partition` and `scheduling/cycle`.
"""
