"""The server: the scheduler for resource managers (RMs) outside of its process, over gRPC.

It owns the connections, their buffers, and who may speak for which RM. It may import all rooms of `proxy` but
the commands, the bench and the client. It needs the extra `licorne[server]`.
"""
