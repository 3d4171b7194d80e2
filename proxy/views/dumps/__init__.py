"""State dumps: everything that a scheduler knows in one document, on request and from time to time.

It owns the form of the document and the files of periodic dumps. It reads by the views of a scheduler, in
pieces between which the partitions work, and imports `scheduler` and the rooms below.
"""
