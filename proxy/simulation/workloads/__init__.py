"""Workloads of simulations, read from scenarios, SWF logs, openb traces and transcripts.

Each reader makes the same values (`workload`). It may import `proxy.transcripts`, `proxy.files` and
`proxy.terminal`.
"""
