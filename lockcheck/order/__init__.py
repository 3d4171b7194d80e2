"""Declared lock orders: what they are made of, how they are read, and the proof that a run kept one.

It may import `lockcheck.findings`; `lockcheck.holding` stands beside it.
"""
