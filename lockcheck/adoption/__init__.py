"""Adoption: the locks that a program makes by `threading` are checked, and the program is not changed.

It owns the factories that replace those of `threading` meanwhile, the checked locks that behave as the
originals do, the choice of the code whose locks are adopted, and the names of such locks. It may import
`lockcheck.locks` and the rooms below.
"""
