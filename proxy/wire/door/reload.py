"""The change of a configuration at all workers of a resource manager (RM): at all of them, or at none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import final

from ....model.configuration.reader import DEFAULT_CONFIGURATION
from ....model.errors import LicorneError, RequestError
from ...core.scheduler.prepared_configuration import PreparedConfiguration, commit_refused
from ...si import si_pb2 as si
from ..client.errors import ConnectionLostError
from .link import PartitionLink
from .linked_manager import LinkedManager, at_each


@final
class DoorChange:
    """One change: prepared at each worker, then committed in the table of the door, then at each worker.

    A worker that is lost between gets the new configuration when its partition recovers.

    Args:
        manager: The RM.
        request: Its new configuration.
        names: The partitions that it has with that configuration.
        link: Makes the link to a partition that is new; it is started here.
    """

    def __init__(
        self,
        manager: LinkedManager,
        request: si.UpdateConfigurationRequest,
        names: list[str],
        link: Callable[[str], PartitionLink],
    ) -> None:
        self._manager = manager
        self._request = si.UpdateConfigurationRequest()
        self._request.CopyFrom(request)
        self._request.config = request.config or DEFAULT_CONFIGURATION  # A worker may have another one.
        self._names = names
        self._link = link
        self._prepared: list[tuple[PartitionLink, PreparedConfiguration]] = []
        self._undo = ExitStack()

    def prepare(self) -> None:
        """Have each worker check it; nothing changes. What was prepared before can be committed no more.

        Raises:
            RequestError: One refuses it, and no worker keeps it.
        """
        links = [link for name in self._names if (link := self._manager.links.get(name)) is not None]
        with ExitStack() as undo:
            found = at_each(links, self._prepared_at)
            for link, prepared in zip(links, found, strict=True):
                if isinstance(prepared, PreparedConfiguration):
                    undo.callback(prepared.abandon)
                    self._prepared.append((link, prepared))
            refusal = next((each for each in found if isinstance(each, LicorneError)), None)
            if refusal is not None:
                raise refusal
            self._undo = undo.pop_all()
        self._manager.prepared = self

    def _prepared_at(self, link: PartitionLink) -> PreparedConfiguration | LicorneError | None:
        """Return what the worker of a partition has prepared, or its refusal; `None` if there is none now.

        The next worker gets what is committed.
        """
        if not link.is_running:
            return None
        try:
            return link.scheduler().prepare_configuration(self._request)
        except ConnectionLostError:
            return None
        except LicorneError as error:
            return error if link.is_running else None

    def abandon(self) -> None:
        """Drop it at each worker."""
        self._undo.close()

    def commit(self) -> list[PartitionLink]:
        """Make it the configuration in use; return the links to partitions that are new, which start.

        Raises:
            RequestError: Another one was prepared since, or the RM has registered again; nothing has changed.
        """
        manager = self._manager
        if manager.prepared is not self:
            self.abandon()
            raise commit_refused(manager.rm_id, "it was given another one, or has registered again")
        manager.prepared = None
        manager.configure(self._request.config, self._request.extraConfig)
        new = {name: self._link(name) for name in self._names if name not in manager.links}
        gone = [link for name, link in manager.links.items() if name not in self._names]
        manager.links = {name: new.get(name) or manager.links[name] for name in self._names}
        for link in new.values():  # They are in the table: what stops the door finds them there.
            link.start()
        at_each(self._prepared, _commit)
        at_each([*manager.links.values()], PartitionLink.configure)
        for link in gone:
            link.close("the configuration has the partition no more", ends=True)
        self._undo.pop_all()
        return [*new.values()]


def _commit(entry: tuple[PartitionLink, PreparedConfiguration]) -> None:
    link, prepared = entry
    try:
        prepared.commit()
    except RequestError:
        return  # It is given the text next, or is lost and recovers with it.
    link.note_configured()
