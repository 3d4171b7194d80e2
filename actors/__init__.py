"""Who runs the model: mailboxes, the dispatcher, engines, timers, and the link to a resource manager (RM).

It owns threads, locks and clocks, and gives the model handles of partitions, applications and nodes. The
engines `direct`, `actors` and `threads` run the same model and decide the same. It may import `model` and
`lockcheck`, and knows nothing of `si.v1`.
"""
