"""Adoption: locks that a program makes by `threading`, or describes, are checked; the program is unchanged.

It owns the factories that replace those of `threading` meanwhile, the checked locks that behave as the
originals do, the choice of the code whose locks are adopted, the names of such locks, the locks that existed
before, and the classes of other libraries that a program describes. It may import `lockcheck.locks` and the
rooms below.
"""
