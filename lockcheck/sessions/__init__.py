"""Sessions: open one, run a program under it, close it, sum up what was found.

It owns the active session. It may import `lockcheck.interception` and the rooms below.
"""
