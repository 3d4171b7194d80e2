"""Two simulations of one input compared: which jobs start earlier or later, of which queue and of which user.

It owns the comparison, its text and its document. It may import the reports of `proxy.simulation`,
`proxy.terminal` and `model`.
"""
