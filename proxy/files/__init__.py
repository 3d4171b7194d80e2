"""Files and texts that anybody may have written: JSON and YAML with positions, and clear errors.

It may import `model` alone.
"""
