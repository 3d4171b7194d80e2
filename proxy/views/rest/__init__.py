"""The REST interface: an ASGI application for one scheduler, and the server that runs it.

It owns paths, parameters, statuses, headers, access and limits. The module `application` puts the routes of
all parts together. It may import the page, the dumps, the core and the base, and needs the extra
`licorne[server]`.
"""
