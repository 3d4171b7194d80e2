"""The play: schedulers on a virtual clock.

This package owns transcripts and their replay, simulations of workloads with their reports, and the
comparison of two configurations. Begin with `simulation.simulation` and `transcripts.replay`.
"""
