"""The choice and the end of allocations that make room for an ask with a better claim.

Victims end for a required node, for a quota and (in `guarantee`) for a guarantee: each module finds victims
and announces that they are to end. It may import `model.state` and the packages below it, but not
`model.requests`.
"""
