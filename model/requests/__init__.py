"""The requests of a resource manager (RM), carried out.

One module for each kind of request: nodes, applications, allocations, releases, foreign allocations,
reloads. Each checks the whole request entry first and answers with a reason where it refuses. It may import
`model.state` and the rooms below; `model.preemption` stands beside it.
"""
