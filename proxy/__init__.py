"""The interfaces to the outside: `si.v1`, the embedded scheduler, simulation, the command line.

It turns messages and files into values of the model, and answers into messages. It may import `actors`,
`model` and `lockcheck`; nothing below knows of `si.v1`, of files or of sockets.
"""
