"""The engines that run the model: mailboxes, the dispatcher, timers, and the link to a resource manager (RM).

This room owns threads, locks and clocks, and gives the model handles of partitions, applications and nodes.
The engines `direct`, `actors` and `threads` run the same model and decide the same. It may import `model` and
`lockcheck`, and does not use `si.v1`.
"""
