"""Recordings: the requests to the partitions of a scheduler and the answers, written as a transcript.

This package owns the files of a recording and the order of their lines. `observer` has the interface for
observers of a scheduler, `recorder` writes the recording. It may import `proxy.si`, `proxy.base.files`,
`actors` and `model`.
"""
