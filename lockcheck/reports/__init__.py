"""Reports for people and tools: JSON, SARIF, GitHub, JUnit, diagrams, an HTML page, certificates.

Each module writes one format from the same documents. It may import `lockcheck.sessions` and the rooms
below.
"""
