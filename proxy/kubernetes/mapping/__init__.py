"""Pods, nodes and namespaces to messages of the scheduler: pure functions."""
