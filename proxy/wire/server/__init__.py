"""The server: the scheduler for resource managers (RMs) outside of its process, over gRPC.

It owns the connections, their buffers, and who may speak for which RM. It may import the core and the base,
and needs the extra `licorne[server]`.
"""
