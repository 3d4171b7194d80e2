"""Where the checker learns of what is not its own: patched functions, signals, Pykka.

It owns the patches and takes them back. It may import `lockcheck.checking` and the rooms below;
`lockcheck.prediction` stands beside it.
"""
