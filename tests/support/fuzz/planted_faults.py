"""Faults that are planted one by one: only the simulator may find each of them, `make planted-faults`.

Each is a change of a line or two, which could happen by mistake and looks right in a review.
"""

from __future__ import annotations

from typing import Final

from support.fuzz.fault import Fault
from support.fuzz.planted_core_faults import CORE_FAULTS

FAULTS: Final = (
    *CORE_FAULTS,
    # ------------------------------------------------------------------------------------------ model
    Fault(
        "a node is tried for what its capacity has room for",
        "model/nodes/order.py",
        "                    and fits(entry.available, resource)\n",
        "",
    ),
    Fault(
        "of two children the one that uses more goes first",
        "model/queues/child_orders.py",
        "            return (priority, use, share, waiting, child.name)",
        "            return (priority, use, -share, waiting, child.name)",
    ),
    Fault(
        "a whole gang that found no room is not tried when a node gains some",
        "model/queues/waiting.py",
        "return gains == self._gains and sizes in self._sizes",
        "return sizes in self._sizes",
    ),
    Fault(
        "a whole gang that needs one rack gets any nodes",
        "model/scheduling/gang_pass.py",
        "domains = state.topology.domains(entry.application.gang_settings.domains)",
        "domains = None",
    ),
    Fault(
        "an ask starts on a node although it runs into a window",
        "model/nodes/windows.py",
        "self.config.drain_ns if run_ns is None else run_ns)",
        "1)",
    ),
    Fault(
        "a plan promises a start during a window",
        "model/planning/plan.py",
        "        if found_ns is None or not windows:",
        "        if True:",
    ),
    Fault(
        "the other nodes of a rack keep their places when its first work begins",
        "model/nodes/node_orders.py",
        "return domain if (before > 0) != (len(used) > 0) else None",
        "return domain if before > 0 and not used else None",
        ("reference",),
    ),
    Fault(
        "the members of a slice are in several racks",
        "model/requests/submission_terms.py",
        '_number_of(tags.get(TOPOLOGY_SLICE_SIZE_TAG, "")) or 1,',
        "1,",
    ),
    Fault(
        "a member that is asked for again gets a node of any rack",
        "model/requests/applications.py",
        "    keep_domain(state, entry)\n",
        "",
    ),
    Fault(
        "a user has of a whole gang that is placed what one member asks for",
        "model/state/placing.py",
        "entry.application_id, entry.user, total)\n    _finish_placing_all",
        "entry.application_id, entry.user, allocations[0].ask.resource)\n    _finish_placing_all",
    ),
    Fault(
        "the offset of a priority is left out",
        "model/queues/queue.py",
        "max(INT32_MIN, min(INT32_MAX, priority + settings.priority_offset))",
        "max(INT32_MIN, min(INT32_MAX, self.priority))",
    ),
    Fault(
        "the place of a child is kept when its usage changes",
        "model/queues/queue.py",
        "        self.child_order.stale[child.name] = child\n        if not priority_changed",
        "        if priority_changed:\n            self.child_order.stale[child.name] = child\n"
        "        if not priority_changed",
    ),
    Fault(
        "the place of a node is kept when something ends there",
        "model/nodes/order.py",
        "        if (score := self.rule.score(self, entry)) != entry.key[0]:",
        "        if (score := self.rule.score(self, entry)) > entry.key[0]:",
    ),
    Fault(
        "a drained node is sized as if nothing ran there",
        "model/nodes/node.py",
        "free = subtract(subtract(self._capacity, Resource(self._allocated)), self._occupied)",
        "free = subtract(self._capacity, self._occupied)",
    ),
    Fault(
        "a queue may use one more than its maximum",
        "model/queues/queue.py",
        "if not fits_in_addition(maximum, used, resource, undefined_unlimited=not is_root):",
        "if is_root and not fits_in_addition(maximum, used, resource, undefined_unlimited=not is_root):",
    ),
    Fault(
        "what ends is released in the leaf alone",
        "model/queues/quota.py",
        "    for queue in leaf.above:\n        queue.release_charge(resource)",
        "    leaf.release_charge(resource)",
    ),
    Fault(
        "queues that were charged keep it when one above has no room",
        "model/queues/quota.py",
        "        for queue in charged:\n            queue.release_charge(resource)",
        "        pass",
    ),
    Fault(
        "what is placed does not count for the limits of its user",
        "model/state/placing.py",
        "    group = state.limits.increase(queue.path, entry.application_id, entry.user, resource)",
        "    group = None",
    ),
    Fault(
        "the RM does not hear of what is placed while a reservation is dropped",
        "model/state/placing.py",
        "        drop_reservations(state, answer.reservations)\n    apply(state, entry, answer)\n"
        "    state.host.announce",
        "        drop_reservations(state, answer.reservations)\n    apply(state, entry, answer)\n"
        "    if not answer.reservations:\n        state.host.announce",
    ),
    Fault(
        "an ask that was placed still counts as waiting",
        "model/state/placing.py",
        "    entry.remove_pending(allocation.ask)\n    if state.node_checks",
        "    if state.node_checks",
    ),
    Fault(
        "a failed try is remembered although something has ended",
        "model/state/charges.py",
        "    state.local_changes += 1\n    if len(state.tree.bars):\n        state.tree.bars.free(",
        "    if not state:\n        state.tree.bars.free(",
    ),
    Fault(
        "a node keeps the room of what has ended elsewhere",
        "model/state/charges.py",
        "        state.nodes.give(node, node.node.remove(allocation.ask.allocation_key))\n\n\ndef leave_swap",
        "        node.node.facts()\n\n\ndef leave_swap",
    ),
    Fault(
        "a reservation that its application drops stays on the node",
        "model/state/charges.py",
        "        state.reserved.remove(reservation.allocation_key)\n",
        "        state.reserved.get(reservation.allocation_key)\n",
    ),
    Fault(
        "what was preempted counts as being preempted for ever",
        "model/state/charges.py",
        "        level.change_preempting(back)",
        "        pass",
    ),
    Fault(
        "the claim of an ask that was dropped is held on",
        "model/state/charges.py",
        "        end_claim(state, record.ask.allocation_key)\n        if not record.placed:",
        "        if not record.placed:",
    ),
    Fault(
        "a leaf is skipped although a node has gained room",
        "model/scheduling/cycle.py",
        "        if sleep.stamp != state.stamp:",
        "        if changes_before != changes:",
    ),
    Fault(
        "a member that waits is not tried again when its swap is cancelled",
        "model/requests/releases.py",
        "        for record in answer.asks:\n            entry.add_pending(record.ask)\n"
        "        apply(state, entry, answer)\n\n\ndef _release_all",
        "        apply(state, entry, answer)\n\n\ndef _release_all",
    ),
    Fault(
        "an end that the RM has reported is not confirmed",
        "model/requests/releases.py",
        "    if ended:\n        _echo(state, entry, (key,), release.termination)",
        "    if ended and answer is None:\n        _echo(state, entry, (key,), release.termination)",
    ),
    Fault(
        "a placeholder that timed out counts as one to come",
        "model/applications/gang.py",
        "            if record.ask.placeholder:\n"
        "                task_groups.count_end(record.ask.task_group_name, replaced=False)\n"
        "            effects.append",
        "            effects.append",
    ),
    Fault(
        "a release by timeout is asked for again each time",
        "model/applications/gang.py",
        "            entry.released = True\n"
        "            effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, placed_text))",
        "            effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, placed_text))",
    ),
    Fault(
        "a leaf sleeps on although its time has come",
        "model/queues/sleep.py",
        "            self.wake(heappop(self._due)[2])\n",
        "            heappop(self._due)\n",
    ),
    Fault(
        "a leaf sleeps on although an ask has come",
        "model/queues/sleep.py",
        "        self.asleep.pop(leaf, None)\n        if leaf.is_leaf:\n",
        "        if leaf.is_leaf and leaf not in self.asleep:\n",
    ),
    Fault(
        "the reservation of a member that replaces a placeholder stays",
        "model/applications/allocations.py",
        "        return core.answer(reservations=reservations)",
        "        return core.answer()",
    ),
    Fault(
        "a recovered allocation is not announced",
        "model/requests/existing.py",
        "    state.host.announce(AllocationPlaced(allocations[0]))\n",
        "",
    ),
    Fault(
        "an idle partition is woken by what cannot be done",
        "model/scheduling/timer_actions.py",
        "    if is_idle(state):\n        return None\n",
        "",
    ),
    # ----------------------------------------------------------------------------------------- actors
    Fault(
        "a link that delivers much loses an announcement",
        "actors/services/rm_link.py",
        "        for _ in range(count):\n            try:",
        "        for _ in range(count - 8):\n            self._waiting.popleft()\n"
        "        for _ in range(min(count, 8)):\n            try:",
    ),
    Fault(
        "a link is woken only if a thread delivers",
        "actors/services/rm_link.py",
        "            if not self._delivers:\n                self._changed.notify()",
        "            if self._delivers:\n                self._changed.notify()",
    ),
    Fault(
        "a link that follows another one begins at once",
        "actors/services/rm_link.py",
        "        self._may_begin.wait()\n",
        "",
    ),
    Fault(
        "a mailbox with messages left is not queued again",
        "actors/runtime/mailbox.py",
        "            push, self._queued = not self._queued, True\n        if wait is not None:",
        "            push = False\n        if wait is not None:",
    ),
    Fault(
        "a worker looks for work before it counts as idle",
        "actors/runtime/pool.py",
        "                    return None\n                self._idle.append(worker)",
        "                    return None\n            with self._lock:\n"
        "                self._idle.append(worker)",
    ),
    Fault(
        "work that comes during a slice is forgotten",
        "actors/engines/partition_actor.py",
        "        self._work_pending = False\n        cycles, began_ns = self._cycles, perf_counter_ns()\n"
        "        before, outcome = self._outcome, self.entity.work(cycles)\n",
        "        cycles, began_ns = self._cycles, perf_counter_ns()\n"
        "        before, outcome = self._outcome, self.entity.work(cycles)\n"
        "        self._work_pending = outcome is CycleOutcome.NOTHING\n",
    ),
    Fault(
        "a partition that is asked for while it works gets no thread afterwards",
        "actors/locks/threads_engine.py",
        "                self._wanted_since.add(partition)\n",
        "",
    ),
    Fault(
        "an earlier timer does not wake the clock",
        "actors/services/clocks.py",
        "            elif is_next:\n                self._changed.notify()",
        "            elif is_next and not self._due:\n                self._changed.notify()",
    ),
    Fault(
        "actions that were deferred run in the wrong order",
        "actors/locks/guards.py",
        "            for action in actions:\n                try:",
        "            for action in reversed(actions):\n                try:",
    ),
    Fault(
        "the lock of a partition is released in the wrong mode",
        "actors/locks/guarded_partition.py",
        "            finally:\n                self.lock.release_read()",
        "            finally:\n                pass",
    ),
    # ----------------------------------------------------------------------------------------- server
    Fault(
        "a message is dropped where its writer had to wait",
        "proxy/wire/server/buffers.py",
        "            while self._bounded and self._is_full() and not self._finished:\n"
        "                self._changed.wait()",
        "            if self._bounded and self._is_full() and not self._finished:\n"
        "                return False",
    ),
    Fault(
        "what a session has written is written again",
        "proxy/wire/server/buffers.py",
        "            items = list(self._waiting)\n            self._clear()",
        "            items = list(self._waiting)\n            self._clear()\n"
        "            self._waiting.extend(items[8:])",
    ),
    Fault(
        "requests of a session are carried out in the wrong order",
        "proxy/wire/server/buffers.py",
        "        item, size_bytes = found\n",
        "        with suppress(Empty):\n            later = self._items.get_nowait()\n"
        "            self._items.put(found if later else later)\n            found = later or found\n"
        "        item, size_bytes = found\n",
    ),
    Fault(
        "of several responses for a stream of si.v1 only the last is written",
        "proxy/wire/server/si_streams.py",
        "            messages = deque(merged(items, lambda item: item, lambda _, __: True))",
        "            messages = deque(items[-1:])",
    ),
    Fault(
        "a manager of the older generation hears of no UUID",
        "proxy/si/older_generation.py",
        "        placed.UUID, placed.allocationKey = uuid_of(key), ask_key_of(key)",
        "        placed.allocationKey = ask_key_of(key)",
    ),
    Fault(
        "a recording lacks turns in which two things are announced",
        "proxy/core/recording/recorder.py",
        "                self._write(lines)\n",
        '                self._write(lines if len(announced) != 2 else b"")\n',
    ),
    Fault(
        "the connection before stays in use",
        "proxy/wire/server/remote_managers.py",
        "                self._table[manager.rm_id] = manager\n",
        "                self._table.setdefault(manager.rm_id, manager)\n",
    ),
    # ----------------------------------------------------------------------------------------- client
    Fault(
        "a request behind merged ones is lost",
        "proxy/wire/client/connection.py",
        "not merges_into(following, message):\n                return message, count, following",
        "not merges_into(following, message):\n                return message, count, _NOTHING",
    ),
    Fault(
        "a client whose connection is lost does not connect again",
        "proxy/wire/client/remote_scheduler.py",
        "            self._connection = None\n        if self.stepped",
        "            self._connection = None\n            return\n        if self.stepped",
    ),
    Fault(
        "callbacks are made in the wrong order",
        "proxy/wire/client/callbacks.py",
        "                step = self._waiting.popleft()",
        "                step = self._waiting.pop()",
    ),
    Fault(
        "a new registration hears what the one before has ended",
        "proxy/wire/client/remote_scheduler.py",
        "        before = self._registered.setdefault(request.rmID, registered)",
        "        before = registered\n        self._registered[request.rmID] = registered",
    ),
    Fault(
        "what runs is announced to the RM that recovers it",
        "proxy/wire/client/recovery_progress.py",
        "            else:\n                del expected[identity]",
        "            if len(response.new) > 2:\n                rest.new.append(placed)\n"
        "            if waits is not None:\n                del expected[identity]",
    ),
    Fault(
        "a node that waits for two answers is schedulable after one",
        "proxy/wire/client/recovery_progress.py",
        "            self._open_on[node_id] -= 1\n            if not self._open_on[node_id]:",
        "            self._open_on[node_id] -= 1\n            if self._open_on[node_id] > 1:",
    ),
    Fault(
        "a recovery goes on sending after another one has registered",
        "proxy/wire/client/recovery.py",
        "        if self._sender is not None or self._is_replaced or self._is_pausing:\n",
        "        if self._sender is not None or self._is_pausing:\n",
    ),
)
