"""The commands of `licorne`, and the options they share.

A command reads its arguments, calls the rooms below and prints; it decides nothing. It loads what it needs
when it runs, so that `--help` is quick. It may import every other wing.
"""
