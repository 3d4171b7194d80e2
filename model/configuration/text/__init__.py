"""From the text of a configuration to values with positions.

It reads YAML into nodes that know their line and column, and turns scalars and shapes into numbers,
durations and lists; a problem names its position. It may import `model.configuration.problems` and the
rooms below `model.configuration`.
"""
