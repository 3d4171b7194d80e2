"""Nodes: what each has, holds and reserves, and the order in which they are tried.

`node` owns one node; `order` keeps all nodes of a partition sorted, in blocks, and finds the first with
room; `topology` has their domains, `windows` when they are reserved. It may import `model.configuration`,
`model.values` and `model.resources`.
"""
