"""The fronts: interfaces to the scheduler for asyncio programs and for notebooks.

They use the public interface of the scheduler, and own no decision and no message. Begin with
`async_scheduler`, for programs on asyncio, or `simulations`, for notebooks.
"""
