"""Faults around the core: in the door, in answers to malformed requests, in takeovers and in kept files.

They are planted like those of `planted_faults`, and searched for in their worlds.
"""

from __future__ import annotations

from typing import Final

from support.fuzz.fault import Fault

_DOOR: Final = ("door",)
_HOSTILE: Final = ("hostile",)
_FILES: Final = ("files",)

OUTER_FAULTS: Final = (
    # ------------------------------------------------------------------------------------------- door
    Fault(
        "a request overtakes those that wait for the worker",
        "proxy/wire/door/link.py",
        "self._place.state is LinkState.RUNNING and not self._queue:",
        "self._place.state is LinkState.RUNNING:",
        _DOOR,
    ),
    Fault(
        "a request that the worker does not read is dropped",
        "proxy/wire/door/link.py",
        "                send_at_once(session.scheduler, request)\n                return\n",
        "                send_at_once(session.scheduler, request)\n            return\n",
        _DOOR,
    ),
    Fault(
        "the RM does not hear what has ended with a lost worker",
        "proxy/wire/door/link.py",
        "            for response in (*refused, *known.heard):\n",
        "            for response in (*refused, *known.heard[3:]):\n",
        _DOOR,
    ),
    Fault(
        "a configuration that is loaded during a recovery does not reach the worker",
        "proxy/wire/door/link.py",
        "        self.configure()\n        self._settle(None)",
        "        self._settle(None)",
        _DOOR,
    ),
    Fault(
        "what a worker that was replaced has sent is still passed on",
        "proxy/wire/door/link.py",
        "                if number != self._number:\n                    return\n                self._doubt",
        "                self._doubt",
        _DOOR,
    ),
    Fault(
        "a confirmation for a lost worker is sent to the next one as it is",
        "proxy/wire/door/allocation_record.py",
        "            self._ending[name, key] = _SILENT\n            return True",
        "            self._ending[name, key] = _SILENT\n            return False",
        _DOOR,
    ),
    Fault(
        "an ask that is placed while the RM withdraws it is not counted as ending",
        "proxy/wire/door/allocation_record.py",
        "                self._ending.setdefault((name, key), _RELEASED_TEXT)\n",
        "",
        _DOOR,
    ),
    Fault(
        "a drained node is schedulable on the next worker",
        "proxy/wire/door/record.py",
        "        node.action = si.NodeInfo.CREATE_DRAIN\n    elif",
        "        node.action = si.NodeInfo.CREATE\n    elif",
        _DOOR,
    ),
    Fault(
        "a node that a recovery left out stays drained",
        "proxy/wire/door/record.py",
        "                if node.action == si.NodeInfo.CREATE:",
        "                if node.action == si.NodeInfo.CREATE_DRAIN:",
        _DOOR,
    ),
    Fault(
        "the RM hears twice that an application is accepted",
        "proxy/wire/door/entries.py",
        "        return item.kind is not _DueKind.AGAIN",
        "        return True",
        _DOOR,
    ),
    Fault(
        "a worker that could not commit counts as configured",
        "proxy/wire/door/linked_manager.py",
        "        return  # The worker gets the text next, or is lost and recovers with it.\n",
        "        pass\n",
        _DOOR,
    ),
    Fault(
        "a resource manager that is paused goes on at the next worker",
        "proxy/wire/door/link.py",
        "                if self._halt == halted:\n",
        "                if self._number:\n",
        _DOOR,
    ),
    Fault(
        "what could not be recovered stays in the record",
        "proxy/wire/door/record.py",
        "        rejected = self._allocations.leave_out(rejections)\n",
        "        rejected = self._allocations.leave_out([])\n",
        _DOOR,
    ),
    Fault(
        "an ask of the door itself is doubted when it is rejected",
        "proxy/wire/door/record.py",
        "self._allocations.doubt(_without_nudges(said))",
        "self._allocations.doubt(said)",
        _DOOR,
    ),
    Fault(
        "a request that waited while its RM registered elsewhere is carried out",
        "proxy/wire/server/session_requests.py",
        "                    self._check_own(request.rmID)  # It may have registered elsewhere meanwhile.\n",
        "",
        ("door", "actors", "threads"),
    ),
    Fault(
        "the releases of a request for two partitions are lost",
        "proxy/wire/door/routing.py",
        "allocationsToRelease=gone[name]) if name in gone else None",
        "allocationsToRelease=gone[name]) if name in gone and name not in new else None",
        _DOOR,
    ),
    # ---------------------------------------------------------------------------------------- hostile
    Fault(
        "asks with a negative size are taken beside a positive one",
        "model/requests/allocations.py",
        "    if strictly_greater_than_zero(resource):\n        return None\n    if has_negative",
        "    if strictly_greater_than_zero(resource) or any(n > 0 for n in resource.values()):\n"
        "        return None\n    if has_negative",
        _HOSTILE,
    ),
    Fault(
        "a key may be in use by two applications",
        "model/requests/allocations.py",
        '    if owner not in ("", submission.application_id):',
        '    if owner not in ("", submission.application_id) and submission.node_id:',
        _HOSTILE,
    ),
    Fault(
        "a second node of one id adds its capacity before it is rejected",
        "model/requests/nodes.py",
        "    if state.nodes.get(name) is not None or name in state.quarantine.nodes:\n        text",
        "    if state.nodes.get(name) is not None or name in state.quarantine.nodes:\n"
        "        state.change_capacity(EMPTY, update.resource or EMPTY)\n        text",
        _HOSTILE,
    ),
    Fault(
        "of two rejected asks in one request one is not answered",
        "model/requests/allocations.py",
        "            rejections[place] = AllocationRejection(\n                submission.allocation_key",
        "            rejections[min([*rejections, place])] = AllocationRejection(\n"
        "                submission.allocation_key",
        _HOSTILE,
    ),
    Fault(
        "a foreign allocation that is refused for its size ends the one before",
        "model/requests/allocations.py",
        '    refusal = invalid(negative_text(f"the resource',
        '    state.foreign.pop(key, None)\n    refusal = invalid(negative_text(f"the resource',
        _HOSTILE,
    ),
    Fault(
        "a removal of an application for a partition that does not exist ends it in the other one",
        "proxy/si/reading.py",
        "removal.applicationID, full_partition_name(removal.partitionName, rm_id), _outcome(removal)",
        'removal.applicationID, full_partition_name("default", rm_id), _outcome(removal)',
        _HOSTILE,
    ),
    Fault(
        "a request of a connection that was replaced is carried out",
        "proxy/wire/server/remote_managers.py",
        "        if current is not manager:",
        "        if current is None:",
        ("door", "actors", "threads"),
    ),
    # ------------------------------------------------------------------------------------------ files
    Fault(
        "a file is written where it is",
        "proxy/base/files/output_files.py",
        '        part = target.with_name(f".{target.name}.{os.getpid()}.part")\n',
        "        part = target\n",
        _FILES,
    ),
    Fault(
        "an old dump is removed before the new one is complete",
        "proxy/views/dumps.py",
        "            unfinished.replace(path)\n        finally:\n",
        "            unfinished.replace(path)\n        except OSError:\n"
        "            min(self._folder.glob(_PATTERN), default=path).unlink(missing_ok=True)\n"
        "            raise\n        finally:\n",
        _FILES,
    ),
    Fault(
        "a torn usage file is read as far as it goes",
        "proxy/views/dumps.py",
        "        return read_use(parse_json(read_text(path)))\n",
        '        text = read_text(path)\n        return read_use(parse_json(text)) if text.endswith("}\\n")'
        " else (0, {})\n",
        _FILES,
    ),
)
