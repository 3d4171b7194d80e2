"""The locks that programs use: exclusive, read/write, conditions, and contracts on functions.

With no session active they cost next to nothing; under one, each call is checked. It may import
every other room of `lockcheck`.
"""
