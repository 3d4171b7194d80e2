"""Workloads of simulations, read from scenarios, SWF logs, openb traces and transcripts.

Each reader makes the same values (`workload`). This package may import `proxy.play.transcripts`,
`proxy.base.files` and `proxy.base.terminal`.
"""
