"""The predicates of a resource manager in its partition: checks of nodes, and the kept answers.

The checks answer the passes of a cycle, whether the RM answers at once or later.
"""
