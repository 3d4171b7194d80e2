"""The configuration: reading it, with every error and its position, and the frozen values it becomes.

It owns the schema of queues, limits, placement rules and nodes. `rules` checks them, `yaml_text` reads YAML.
It may import `model.resources`, `model.errors` and `model.marks`; `model.values` stands beside it.
"""
