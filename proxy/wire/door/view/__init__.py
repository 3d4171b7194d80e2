"""One view over many workers: REST, metrics and the page of a door.

A request that names a partition is passed to the REST interface of its worker; a document about several
partitions is merged from those of all workers.
"""
