"""The scheduler interface `si.v1`: its messages, its API, and the way from and to the model's messages."""
