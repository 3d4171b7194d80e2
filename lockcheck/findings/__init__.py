"""Results of checks, as values: findings, evidence, witnesses, levels, errors.

Also how a finding is written as text and JSON. Nothing here checks anything, and it imports no other room
of `lockcheck`.
"""
