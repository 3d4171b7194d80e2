"""The options of gRPC by which either end of a connection finds that the other one has vanished."""

from __future__ import annotations


def keepalive_options(silence_seconds: float, sign_seconds: float) -> tuple[tuple[str, int], ...]:
    """Return the options.

    Args:
        silence_seconds: How long the other end may be silent before it is asked for a sign of life.
        sign_seconds: How long it may take to give one.
    """
    sign_ms = _milliseconds(sign_seconds)
    return (
        ("grpc.keepalive_time_ms", _milliseconds(silence_seconds)),
        ("grpc.keepalive_timeout_ms", sign_ms),
        # gRPC pings to measure a connection, too, and does not ask for a sign of life meanwhile.
        ("grpc.http2.ping_timeout_ms", sign_ms),
    )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1_000))
