"""Checking that is switched on by environment variables, for a program that is not changed.

It reads `LOCKCHECK` and its relatives, and opens a session when the first lock is made. It may import
`lockcheck.confirming` and the rooms below; `lockcheck.commands` stands beside it.
"""
