"""Preemption for a queue below its guarantee: one attempt, from the candidate victims to the decision.

`attempt` runs the attempt; the other modules compute on copies, so that an attempt without result changes
nothing. The package may import `model.preemption`, `model.state` and the packages below them.
"""
