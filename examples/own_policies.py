"""Six policies that users ask for, each a class of a few lines; docs/policies.md describes the interface."""

from math import log10

from licorne import policies

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
GPU = "nvidia.com/gpu"


def free_share(node: policies.NodeView) -> float:
    """Return the free part of the cores of a node, from 0 to 1."""
    return node.available.get("vcore") / max(node.capacity.get("vcore"), 1)


class GpuPack:
    """Nodes without GPUs first, then the one with the fewest free GPUs: whole nodes stay free for gangs."""

    def node_key(self, node: policies.NodeView) -> float:
        """Return the place of a node."""
        return 10 + node.available.get(GPU) + free_share(node) if node.capacity.get(GPU) else free_share(node)


class CheapestFirst:
    """The cheapest type of node first, of equally cheap nodes the fullest; types without a price last."""

    def __init__(self, **prices: float) -> None:
        self.prices = {"spot": 30, "reserved": 45, "on-demand": 100, **prices}

    def node_key(self, node: policies.NodeView) -> float:
        """Return the place of a node."""
        return self.prices.get(node.attributes.get("si/instance-type", ""), 1_000_000) + free_share(node)


class RacksOff:
    """Racks in the order of their numbers, the fullest node first: the last racks can be switched off."""

    def __init__(self, racks: int = 1_000) -> None:
        self.racks = racks

    def node_key(self, node: policies.NodeView) -> float:
        """Return the place of a node; its attribute `rack` is r1, r2, ..."""
        rack = node.attributes.get("rack", "")
        return (int(rack[1:]) if rack else self.racks) + free_share(node)


class ShortestFirst:
    """The shortest job first, with linear ageing: none overtakes a job that has waited 50 walltimes."""

    depends_on = frozenset({"submission"})
    AGEING = 0.02

    def application_key(self, application: policies.ApplicationView) -> float:
        """Return the place of a job; without a walltime it counts as a day."""
        return (application.walltime_ns or DAY) + self.AGEING * application.submitted_at_ns


class F1:
    """An order of jobs published at SC 2017, learnt: log10(walltime) * cores + 870 * log10(submission)."""

    BEGIN = 946_684_800 * SECOND  # the start of simulations: the year 2000

    def application_key(self, application: policies.ApplicationView) -> float:
        """Return the place of a job."""
        walltime = max((application.walltime_ns or DAY) / SECOND, 1)
        submitted = max((application.submitted_at_ns - self.BEGIN) / SECOND, 1)
        cores = max(application.pending.get("vcore") / 1000, 1)
        return log10(walltime) * cores + 870 * log10(submitted)


class NightOnly:
    """Applications in a queue called `night` start only between 22:00 and 6:00 UTC."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        """Return the time until which an application has to wait, `None` if it may start."""
        since = now_ns % DAY
        if not application.queue.endswith(".night") or since < 6 * HOUR or since >= 22 * HOUR:
            return None
        return policies.Wait("starts after 22:00", now_ns - since + 22 * HOUR)
