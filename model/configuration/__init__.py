"""The configuration: reading it with every error and its place, and the frozen values it becomes."""
