"""Sessions: open one, run a program under it, close it, sum up what was found.

It owns the active session and the recording of traces. It may import `lockcheck.interception`,
`lockcheck.prediction` and the rooms below.
"""
