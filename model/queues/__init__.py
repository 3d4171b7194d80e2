"""The queue tree: quotas, orders, templates and properties of queues.

It owns what each queue has allocated and pending, the order in which its children and applications are
tried, and whether there is room below its maximum. It may import `model.applications`, `model.limits`,
`model.placement` and the rooms below.
"""
