"""How the checker observes code that is not its own: patched functions, signals, Pykka.

It owns the patches and removes them. It may import `lockcheck.checking` and the rooms below;
`lockcheck.prediction` stands beside it.
"""
