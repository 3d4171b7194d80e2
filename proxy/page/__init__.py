"""The page of a server: what a person sees of a running scheduler in a browser.

It owns the files of the page, the live data that they show, and the serving of another user interface from a
folder. It may import `proxy.events`, `proxy.explanation`, `proxy.scheduler`, `lockcheck`, `actors` and
`model`.
"""
