"""Confirming: runs that are steered into a predicted deadlock.

It owns the participants and pauses each at its scheduling point. It may import
`lockcheck.reports` and the rooms below.
"""
