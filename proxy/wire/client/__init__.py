"""The client: the scheduler of another process, with the API of the one in this process.

It owns the connection and what is sent again when it is lost. It may import the core and the base, and
needs the extra `licorne[server]`.
"""
