"""Values that all rooms share: messages, asks, users, refusals, documents, ordered containers.

Everything here is either immutable or a plain container; nothing decides. It may import `model.resources`,
`model.errors` and `model.marks`.
"""
