"""One view over many workers: REST, metrics and the page of a door.

A request that names a partition is passed to the REST interface of its worker; a document that crosses
partitions is merged of those of all workers.
"""
