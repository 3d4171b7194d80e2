"""A scheduler of pods: one more resource manager, between an API server of Kubernetes and the scheduler.

See docs/design/005-kubernetes.md. It uses the public interface alone; nothing below the proxy knows of pods.
"""
