"""The interfaces to the outside, in wings, each of which imports only those below it.

From the top: `shell`, `fuzz` and `kubernetes`, `wire` and `play`, `views`, `core`, `base`, `si`;
docs/architecture.md introduces them. They turn messages and files into values of the model, and answers into
messages. They may import `actors`, `model` and `lockcheck`; nothing below knows of `si.v1`, of files or of
sockets.
"""
