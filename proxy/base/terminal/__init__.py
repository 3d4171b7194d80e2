"""Standard output, tables and error messages of the command line.

It may import `model.errors` alone.
"""
