"""How fast the scheduler is, in units of what this machine allows: `licorne bench`.

It owns the workloads for users, the measurement and its report; what measures the project itself is in
`bench/` beside the package. It may import `proxy.scheduler`, `proxy.si` and `proxy.terminal`.
"""
