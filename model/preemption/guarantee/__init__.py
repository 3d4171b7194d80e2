"""Preemption for a queue below its guarantee: one attempt, from the candidate victims to the decision.

`attempt` runs it; the other modules compute on copies, so that an attempt without result changes nothing.
It may import `model.preemption`, `model.state` and the rooms below.
"""
