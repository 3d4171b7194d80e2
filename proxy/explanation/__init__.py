"""Explanations and dry runs for people and programs: their words, their documents, and their commands."""
