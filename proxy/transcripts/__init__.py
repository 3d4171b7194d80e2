"""Transcripts: what a resource manager said, one JSON object a line, read and replayed.

It may import `proxy.scheduler`, `proxy.si` and `proxy.files`.
"""
