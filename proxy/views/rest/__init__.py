"""The REST interface: an ASGI application for one scheduler, and the server that runs it.

It owns paths, parameters, statuses, headers, access and limits. The module `routes` puts the routes of all
parts together. It may import all rooms of `proxy` but the commands, the bench, the gRPC server and the
client. It needs the extra `licorne[server]`.
"""
