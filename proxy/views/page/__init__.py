"""The page of a server: what a person sees of a running scheduler in a browser.

It owns the files of the page, the live data that they show, and the serving of another user interface from a
folder. It may import `proxy.core.events`, `proxy.core.explanation`, `proxy.core.scheduler`, `lockcheck`,
`actors` and `model`.
"""
