"""The webhooks that an API server asks before it stores pods, workloads and the configuration."""
