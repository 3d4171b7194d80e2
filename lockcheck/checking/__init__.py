"""The checks themselves: the lock graph, cycles in it, deadlocks, blocking calls.

Checks call a `Watch` (`watch`), which collects what they report; which checks are on stands in a frozen
policy (`policy`). It may import `lockcheck.holding` and the rooms below.
"""
