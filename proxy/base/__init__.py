"""The base: what all other wings read and write with.

It owns the reading and writing of files, the output of commands, the settings of a process, and its build.
Its three parts do not import each other. Begin with `files.input_files`.
"""
