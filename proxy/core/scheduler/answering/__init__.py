"""Answers to questions about a scheduler: explanations, lists, documents of everything, and live rows.

Questions are read-only; a partition copies values in a short turn, and the caller's thread does the rest.
"""
