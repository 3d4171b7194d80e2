"""Two simulations of one input compared: which jobs start earlier or later, of which queue and user, and why.

It owns the comparison, its reasons, its text, its document and its page. It may import
`proxy.play.simulation`, the sentences of `proxy.core.explanation`, `proxy.base.terminal` and `model`.
"""
