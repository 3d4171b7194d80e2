"""The scheduling cycle and its passes.

A cycle goes through reserved asks, placeholders to replace, and then queues, applications and asks in
order; each pass makes at most one placement. It may import `model.planning`, `model.preemption`,
`model.requests` and the rooms below; `model.explanation` stands beside it.
"""
