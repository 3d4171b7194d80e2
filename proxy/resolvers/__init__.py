"""Who is in which group: the resolvers that a partition can have, and how they are asked.

A look-up may be slow, so it is made before the partition gets the request. It may import `proxy.files` and
`model`; `proxy.si` stands beside it.
"""
