"""The wire: a scheduler in another process, over gRPC.

It owns the server with its sessions, the client with the recovery after a lost connection, and the door,
which spreads partitions over workers. Begin with `server.sessions` on one side and `client.remote_scheduler`
on the other.
"""
