"""What a simulation shows over time: its figures, as a page for people and as JSON and CSV for programs.

It owns the series that are collected while a simulation runs, the document of the figures, and the page.
It may import the record and the accounts of `proxy.play.simulation`, `proxy.base.files`,
`proxy.base.terminal` and `model`.
"""
