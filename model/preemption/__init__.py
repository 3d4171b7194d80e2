"""Which allocations end so that an ask with a better claim can run.

For a required node, for a quota and (in `guarantee`) for a guarantee: each finds victims and announces that
they are to end. It may import `model.state` and the rooms below; `model.requests` stands beside it.
"""
