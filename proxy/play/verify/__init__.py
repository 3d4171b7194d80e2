"""A checker of recorded decisions, which knows nothing of the scheduler that has made them.

It imports no other room of Licorne: it reads the lines of a recording, keeps accounts of its own, and judges
what the resource managers have heard.
"""
