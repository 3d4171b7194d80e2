"""Answers to questions about a scheduler: explanations, lists, documents of everything, and live rows.

What is asked is read-only; a partition copies values in a short turn, and the caller's thread does the rest.
"""
