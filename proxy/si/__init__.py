"""The scheduler interface `si.v1`: its messages, its API, and their translation to values of the model.

`si.proto` is the source, `si_pb2` is generated from it. It may import `model`, and is
independent of `proxy.core.resolvers`.
"""
