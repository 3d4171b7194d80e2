"""Metrics: what a scheduler counts besides its state, and all of it as Prometheus reads it.

It owns the counts of what was sent to resource managers. Everything else is copied from the partitions at
each scrape. It may import `proxy.base`, `actors` and `model`; only `families` and `exporter` import
prometheus-client.
"""
