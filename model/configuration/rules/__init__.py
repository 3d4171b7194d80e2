"""Rules that a queue configuration must satisfy, and warnings.

Each module checks one part of the configuration (queues, limits, placement, nodes, resources) and reports
problems with their positions; `all_rules` runs them all. It may import `model.configuration` and the rooms
below it.
"""
