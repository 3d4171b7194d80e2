"""Simulations on a virtual clock: the resource manager that plays a workload, and the report.

This package drives any scheduler through the interface `core.Core`, and counts the events. It may import
`proxy.play.transcripts`, `proxy.core.scheduler` and the packages below them.
"""
