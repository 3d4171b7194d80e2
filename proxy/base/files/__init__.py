"""Files and texts from any source: JSON and YAML with positions, and clear errors.

It may import `model` alone.
"""
