"""Documents of the REST interface and of snapshots, made of values that the model hands out.

It owns the names, types and units of the interface. A document is plain data that JSON can hold, and is
declared once, see `declarations`. It may
import `model`; it asks no scheduler, so that readers make documents on their own threads.
"""
