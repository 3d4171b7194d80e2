"""Transcripts: the requests of resource managers, one JSON object per line, read and replayed.

This package may import `proxy.core.scheduler`, `proxy.si` and `proxy.base.files`.
"""
