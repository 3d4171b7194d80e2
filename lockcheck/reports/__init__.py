"""Reports for people and tools: JSON, SARIF, diagrams, certificates.

Each module writes one format from the same documents. It may import `lockcheck.sessions` and the rooms
below.
"""
