"""Prediction: from one recorded run, the deadlocks that another run of the same program can have.

It reads traces and changes nothing. It may import `lockcheck.checking` and the rooms below;
`lockcheck.interception` stands beside it.
"""
