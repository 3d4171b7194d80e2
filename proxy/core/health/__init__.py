"""Health: checks of a running scheduler, and the history of its applications and containers.

It owns the last report, the history, and the thread that makes both from time to time. It asks partitions in
pieces of bounded size, and imports the rooms below `scheduler`.
"""
