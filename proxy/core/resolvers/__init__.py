"""The groups of users: the resolvers that a partition can have, and how they are asked.

A look-up may be slow, so it is made before the partition gets the request. This room may import
`proxy.base.files` and `model`; it is independent of `proxy.si`.
"""
