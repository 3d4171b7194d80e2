"""Explanations and dry runs for people and programs: their sentences and their documents.

It plays an input up to a moment and writes the answers of the scheduler. It may import
`proxy.simulation`, `proxy.transcripts`, `proxy.scheduler` and the rooms below.
"""
