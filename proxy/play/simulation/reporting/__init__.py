"""The figures of a simulation over time, as a page for people and as JSON and CSV for programs.

This package owns the series that are collected during a simulation, the document of the figures, and the
page. It may import the record and the accounts of `proxy.play.simulation`, `proxy.base.files`,
`proxy.base.terminal` and `model`.
"""
