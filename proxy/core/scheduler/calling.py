"""Methods of every scheduler besides the calls of `si.v1`: `with`, calls without messages, its end."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Self, final

from ....actors.services.interrupts import start_thread
from ....model.errors import RequestError
from ...base.files.input_files import GivenConfiguration, configuration_text
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...si.arguments import check_callback, check_message, check_names, check_texts, check_type


class CallingSide(ABC):
    """The conveniences of a scheduler, in this process or in another one."""

    @abstractmethod
    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str] | None = None,
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; one that is registered already loses all it had."""

    @abstractmethod
    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a resource manager while it runs."""

    @abstractmethod
    def request_reconsideration(self, request: v1.Reconsideration) -> None:
        """Try again what the predicates of a resource manager have refused."""

    @abstractmethod
    def stop(self) -> None:
        """End it; called at the end of a `with` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def register(
        self,
        rm_id: str,
        callback: ResourceManagerCallback,
        *,
        configuration: GivenConfiguration = "",
        extra_configuration: Mapping[str, str] | None = None,
        partitions: Collection[str] | None = None,
    ) -> None:
        """Register a resource manager with its queue configuration and its other settings.

        Without a configuration a server gives it its own; a scheduler in this process has a default one.

        Args:
            rm_id: The resource manager.
            callback: The receiver of its answers and placements.
            configuration: Its queues: YAML text, a path (`pathlib.Path`) of a file with it, which is read
                now, or a mapping.
            extra_configuration: Its other settings.
            partitions: The names of the partitions of its configuration that this scheduler makes; of the
                others another scheduler takes care. They stay the same when the configuration is updated.
                All of them by default.

        Raises:
            RequestError: the registration is refused; the text has every error with its position.
            LicorneError: the file with the configuration cannot be read.
        """
        check_type("rm_id", rm_id, str)
        check_texts("extra_configuration", extra_configuration)
        request = si.RegisterResourceManagerRequest(
            rmID=rm_id,
            policyGroup="queues",
            config=configuration_text(configuration),
            extraConfig=extra_configuration,
        )
        self.register_resource_manager(request, callback, partitions=partitions)

    def reconfigure(
        self,
        rm_id: str,
        configuration: GivenConfiguration,
        *,
        extra_configuration: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the configuration of a resource manager while it runs; the arguments are as for `register`.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
            LicorneError: the file with the configuration cannot be read.
        """
        check_type("rm_id", rm_id, str)
        check_texts("extra_configuration", extra_configuration)
        self.update_configuration(
            si.UpdateConfigurationRequest(
                rmID=rm_id,
                policyGroup="queues",
                config=configuration_text(configuration),
                extraConfig=extra_configuration,
            )
        )

    def reconsider(
        self,
        rm_id: str,
        *,
        partition: str | None = None,
        node_ids: Collection[str] = (),
        allocation_keys: Collection[str] = (),
        predicate_classes: Collection[str] = (),
    ) -> None:
        """Try again at once what the predicates of a resource manager have refused.

        It knows that labels, taints or neighbours have changed. Nothing is asked again by time alone of asks
        with a predicate class (`docs/embedding.md`), and once a second of others. Without nodes, keys and
        classes, everything is tried again, and policies are asked again for all keys and starts.

        Args:
            rm_id: The resource manager.
            partition: The name of one of its partitions, `None` for all.
            node_ids: Nodes about which its answers have changed.
            allocation_keys: Asks about which they have changed.
            predicate_classes: Classes of asks about which they have changed.

        Raises:
            RequestError: It has not registered, or has no such partition.
        """
        check_type("rm_id", rm_id, str)
        check_type("partition", partition, str, type(None))
        check_names("node_ids", node_ids)
        check_names("allocation_keys", allocation_keys)
        check_names("predicate_classes", predicate_classes)
        self.request_reconsideration(
            v1.Reconsideration(
                rm_id=rm_id,
                partition_name=partition,
                node_ids=node_ids,
                allocation_keys=allocation_keys,
                predicate_classes=predicate_classes,
            )
        )


def check_registration(
    request: si.RegisterResourceManagerRequest, callback: object, partitions: Collection[str] | None
) -> None:
    """Refuse a registration that is of another type, has no valid callback, or has a wrong list.

    Args:
        request: The registration.
        callback: The callback.
        partitions: The partitions to make; `None` stands for all of them.

    Raises:
        RequestError: One of them is wrong; the list may also not be empty.
    """
    check_message("a registration", request, si.RegisterResourceManagerRequest)
    check_callback(callback)
    if partitions is not None:
        check_names("partitions", partitions)
        if not partitions:
            raise RequestError("the list of partitions to make is empty: name some, or leave it out for all")


@final
class Stopping:
    """Ends a scheduler on a separate thread, so that a caller whose wait is interrupted may wait again.

    Args:
        halt: ends the scheduling; nothing new is announced afterwards.
        finish: waits until all announcements are delivered; may wait for a callback to end.
        on_thread: whether it may start a thread; otherwise the first caller ends the scheduler.
    """

    def __init__(self, halt: Callable[[], None], finish: Callable[[], None], *, on_thread: bool) -> None:
        self._halt = halt
        self._finish = finish
        self._on_thread = on_thread
        self._lock = threading.Lock()
        self._halted: Future[None] | None = None
        self._ended: Future[None] = Future()
        self._thread: threading.Thread | None = None

    def wait(self, *, inside_callback: bool) -> None:
        """Begin, unless it has begun, and wait for the end; in a callback, only until scheduling has ended.

        Raises:
            LicorneError: something could not be ended; the next call tries again.
        """
        with self._lock:
            begins = self._halted is None
            halted, ended = (Future(), Future()) if self._halted is None else (self._halted, self._ended)
            self._halted, self._ended = halted, ended
            if begins and self._on_thread:
                self._thread = start_thread(self._run, "licorne-stop")
            thread = self._thread
        if begins and not self._on_thread:
            self._run()
        halted.result()
        if not inside_callback:
            ended.result()
            if thread is not None:
                thread.join()

    def _run(self) -> None:
        halted, ended = self._halted, self._ended
        assert halted is not None, "no thread has begun to stop: please report"
        for step, outcome in ((self._halt, halted), (self._finish, ended)):
            try:
                step()
            except BaseException as error:  # noqa: BLE001 - the threads that wait get it
                self._halted = None
                for each in (halted, ended):
                    if not each.done():
                        each.set_exception(error)
                return
            outcome.set_result(None)
