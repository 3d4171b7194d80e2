"""The events of a scheduler, kept for readers.

Owns the ring of facts with the ids of their records, the streams that read it, the records that facts stand
for, and the delivery to resource managers. May import `si` and `model`; knows nothing of HTTP.
"""
