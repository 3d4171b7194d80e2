"""The state of a partition, and the services that keep it consistent.

It holds the tables of applications and nodes, counters, the log of preemptions and the quarantine, commits
a placement in all of them or not at all, and checks the invariants. It may import `model.queues` and the
rooms below.
"""
