"""When jobs can start, from when the work that runs is expected to end: promises, and what keeps them.

A plan is made of values; `planned_jobs` makes them of a partition. Nothing here changes a partition. It may
import `model.state` and the rooms below; `model.preemption` and `model.requests` stand beside it.
"""
