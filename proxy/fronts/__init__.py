"""The fronts: the scheduler as other kinds of programs use it, on the interfaces that all programs have.

They own no decision and no message. Begin with `async_scheduler`, for programs on asyncio, or
`simulations`, for notebooks.
"""
