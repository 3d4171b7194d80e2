"""The events of a scheduler: what has happened, kept for those who want to know.

Owns the ring of facts with the ids of their records, the streams that read it, the records that facts stand
for, and the delivery to resource managers. May import `si` and `model`; knows nothing of HTTP.
"""
