"""What every scheduler offers besides the calls of `si.v1`: `with`, and a registration without messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from ..si import si_pb2 as si
from ..si.api import ResourceManagerCallback

__all__ = ["CallingSide"]


class CallingSide(ABC):
    """The conveniences of a scheduler, in this process or in another one."""

    @abstractmethod
    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; one that is registered already loses all it had."""

    @abstractmethod
    def stop(self) -> None:
        """End it; called at the end of a `with` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def register(
        self,
        rm_id: str,
        callback: ResourceManagerCallback,
        *,
        configuration: str = "",
        extra_configuration: Mapping[str, str] | None = None,
    ) -> None:
        """Register a resource manager with its queue configuration, as YAML text, and its other settings.

        Without a configuration a server gives it its own; a scheduler in this process has a default one.

        Raises:
            RequestError: the registration is refused; the text says why, each error with its position.
        """
        request = si.RegisterResourceManagerRequest(
            rmID=rm_id, policyGroup="queues", config=configuration, extraConfig=extra_configuration
        )
        self.register_resource_manager(request, callback)
