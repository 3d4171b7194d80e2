"""Quantities and resources: exact, immutable amounts of memory, processors and anything else.

A resource maps names of types to whole numbers; this room owns their arithmetic, their comparisons, their
shares of a total, and how texts such as `10G` or `500m` are read and written. It knows nothing of queues or
nodes. It may import `model.errors`.
"""
