"""A terminal view of a running server, read over its REST interface: `licorne top`.

It owns the client of that interface, the functions that make tables of its documents, and the application in
the terminal. A server may be one of Licorne or of YuniKorn. It may import `terminal`, of `events`
the words, and of the model its errors.
"""
