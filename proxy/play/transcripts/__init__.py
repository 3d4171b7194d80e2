"""Transcripts: the requests of resource managers, one JSON object a line, read and replayed.

It may import `proxy.core.scheduler`, `proxy.si` and `proxy.base.files`.
"""
