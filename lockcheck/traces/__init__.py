"""Recorded events: the trace in memory, its file format, reading and writing.

It may import `lockcheck.holding`, `lockcheck.order` and `lockcheck.findings`.
"""
