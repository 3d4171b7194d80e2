"""What a partition knows of the predicates of its resource manager: checks of nodes, and the answers kept.

The checks answer the passes of a cycle, whether the RM answers at once or later.
"""
