"""The commands `licorne lockcheck ...`.

Each reads its arguments, calls the rooms below and returns an exit code; no check lives here. It may import
`lockcheck.confirming` and the rooms below; `lockcheck.environment` stands beside it.
"""
