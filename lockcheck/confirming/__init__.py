"""Confirming: runs that are steered into a possible deadlock.

It owns the participants and pauses each at its scheduling point. It may import
`lockcheck.reports` and the rooms below.
"""
