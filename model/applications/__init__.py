"""Applications: asks, allocations, placeholders and swaps, reservations, states and timers.

An application owns all that was asked and placed for it. It calls nothing above it: each method returns an
answer (`effects.Answer`), which the partition applies to everything else. It may import
`model.configuration`, `model.values` and `model.resources`.
"""
