"""Recordings: what the partitions of a scheduler are asked and answered, written as a transcript.

It owns the files of a recording and the order of their lines. `observer` says what of a scheduler can be
watched, `recorder` writes it. It may import `proxy.si`, `proxy.base.files`, `actors` and `model`.
"""
