"""Explanations and dry runs for people and programs: their sentences and their documents.

It may import `proxy.core.documents`, `proxy.base` and `model`.
"""
