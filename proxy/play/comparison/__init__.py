"""The comparison of two simulations of one input: jobs that start earlier or later, with the reasons.

This package owns the comparison, its reasons, its text, its document and its page. It may import
`proxy.play.simulation`, the sentences of `proxy.core.explanation`, `proxy.base.terminal` and `model`.
"""
