"""Limits of users and groups, and what each of them uses, queue by queue.

It owns the usage trees and decides whether a user or a group may take more. It may import
`model.configuration`, `model.values` and `model.resources`.
"""
