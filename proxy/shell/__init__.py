"""The shell: the command `licorne`.

It owns the commands, their options and their output, and decides nothing. Begin with `command_line`.
"""
