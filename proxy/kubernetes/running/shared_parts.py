"""The shared parts of a running scheduler of pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..client.api_calls import ApiCalls
from ..mapping.settings import KubernetesSettings
from .cache import ClusterCache
from .event_loop import EventLoop, RequestBatch
from .manager import Reconsidering
from .pod_actions import PodActions
from .reporting import Reporter


@final
@dataclass(frozen=True, slots=True)
class SharedParts:
    """The settings, the known cluster, the requests, the actions and the reports."""

    settings: KubernetesSettings
    cache: ClusterCache
    loop: EventLoop
    requests: RequestBatch
    calls: ApiCalls
    actions: PodActions
    reporter: Reporter
    reconsidering: Reconsidering
