"""The history of a scheduler, in a file: uses, waits, ends, preemptions and configurations.

The room owns the form of the file, the thread that writes it, and the questions to it. It reads by the views
of a scheduler, and imports the core and the base.
"""
