"""The held locks of each execution, its stacks and its place in the happens-before order.

It owns the state of the checker for each thread and the slots that a session fills (`runtime`). It may
import `lockcheck.findings`; `lockcheck.order` stands beside it.
"""
