"""The views: what people and monitoring programs see of a running scheduler.

It owns the REST interface, the page, the terminal view and the state dumps; they read, and change no
decision. Begin with `rest.application`, and with `documents` of the core, which has all that they show.
"""
