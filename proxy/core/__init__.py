"""The core: the scheduler that a program embeds, and everything that it answers and keeps.

It owns the resource managers (RMs) with their registrations and callbacks, the groups of users, events,
metrics, health, recordings, and the documents and sentences about its state. It opens no
socket. Begin with `scheduler.scheduler`.
"""
