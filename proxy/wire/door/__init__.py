"""A single scheduler over many workers: each partition runs on its own worker, an ordinary `licorne serve`.

See `docs/design/006-door.md`.
"""
