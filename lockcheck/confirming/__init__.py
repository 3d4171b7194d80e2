"""Runs that are steered into a predicted deadlock, to confirm it.

It owns the threads that take part and stops each at its scheduling points. It may import
`lockcheck.reports` and the rooms below.
"""
