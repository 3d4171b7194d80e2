"""A checker of recorded decisions that is independent of the scheduler.

It imports no other package of Licorne: it reads the lines of a recording, keeps separate accounts, and judges
the messages to the resource managers.
"""
