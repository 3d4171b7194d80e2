"""One door to many schedulers: each partition is on a worker of its own, an ordinary `licorne serve`.

See `docs/design/006-door.md`.
"""
