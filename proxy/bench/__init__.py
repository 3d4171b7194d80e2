"""How fast the scheduler is on this machine: `licorne bench`.

It owns the workloads, the measurement and its report; what measures the project itself is in `tests/bench/`,
outside of the package. It may import `proxy.core.scheduler`, `proxy.si` and `proxy.base.terminal`.
"""
