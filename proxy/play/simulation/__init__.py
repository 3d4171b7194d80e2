"""Simulations on a virtual clock: the resource manager that plays a workload, and the report.

It drives any scheduler through the interface `core.Core`, and counts what happened. It may import
`proxy.play.transcripts`, `proxy.core.scheduler` and the rooms below.
"""
