"""Views of a partition: functions that copy values of it for `Partition.read`, and change nothing.

A reader takes what it needs in pieces, so that the partition soon goes on; it makes documents elsewhere.
"""
