"""How the checker observes code that is not its own: hooked functions, and signals.

It owns the hooks and removes them. It may import `lockcheck.checking` and the rooms below.
"""
