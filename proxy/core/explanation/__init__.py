"""Explanations and dry runs for people and programs: their sentences and their documents.

It plays an input up to a moment and writes the answers of the scheduler. It may import
`proxy.play.simulation`, `proxy.play.transcripts`, `proxy.core.scheduler` and the rooms below.
"""
