"""An input played up to a moment: a stopped scheduler that answers questions.

A transcript is replayed with the cycles that it prescribes. Every other input is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, final

from ....actors.services.clocks import EPOCH_2000_NS
from ....model.configuration.durations import DurationError, parse_duration_ns
from ....model.configuration.problems import Position
from ....model.errors import LicorneError
from ....model.policies.policies import PolicyFactory
from ...base.files.input_files import read_located_yaml, read_text
from ...core.explanation.text import Where
from ...core.resolvers.resolver import read_users
from ...core.scheduler.engine_names import EngineName
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from ..transcripts.replay import Replay
from ..transcripts.transcript import Line, read_transcript
from .accounts import Jobs
from .core import SchedulerCore
from .driver import Driver, NoProgress
from .forecasts import Forecasts, StartForecast, forecasts_of
from .record import SimulationRecord
from .simulated_rm import SimulatedRM
from .simulation import GivenQueues, partitions_in, read_queues
from .workloads.inputs import InputKind, InputOptions, Transcript, checked_kind, load_input

_FIRST_PARTITION: Final = "partitions[0]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """The input to play, and the moment to stop at.

    Attributes:
        input: The file with the work, and its reading options.
        config_path: The queues that replace those of the input; `None` keeps those.
        users_path: A file of users with their groups, which replaces the configured resolvers; `None` keeps
            those.
        engine: The engine of the scheduler.
        threads: The number of threads of the engine; `None` for one.
        at_ns: The moment to stop at, from the start; `None` for the end.
        after_line: The line of a transcript to stop after; `None` for the last.
        policies: The policies that the queues may name.
        with_forecasts: Whether the starts of jobs can be forecast.
    """

    input: InputOptions
    config_path: Path | None = None
    users_path: Path | None = None
    engine: EngineName = "direct"
    threads: int | None = None
    at_ns: int | None = None
    after_line: int | None = None
    policies: Mapping[str, PolicyFactory] = field(default_factory=dict)
    with_forecasts: bool = False


def moment_ns(text: str) -> int:
    """Read the moment to stop at.

    Raises:
        LicorneError: The text is not a duration, or a negative one.
    """
    try:
        at_ns = parse_duration_ns(text)
    except DurationError as error:
        raise LicorneError(f"--at: {error}") from error
    if at_ns < 0:
        raise LicorneError(f"--at {text}: a time before the start")
    return at_ns


@dataclass(frozen=True, slots=True)
class PlayedInput:
    """A scheduler at a moment.

    `elapsed_ns` is the virtual time since the start, `line` the last line of a transcript that was played.
    `forecasts` is `None` if they were not requested.
    """

    scheduler: Scheduler
    elapsed_ns: int
    line: int | None
    where: Where
    forecasts: Forecasts | None = None

    def forecast(self, application_id: str) -> StartForecast | None:
        """Return when a job starts, `None` unless it waits and forecasts were requested."""
        return None if self.forecasts is None else self.forecasts.of(application_id, self.elapsed_ns)


@contextmanager
def play_input(options: PlayOptions) -> Iterator[PlayedInput]:
    """Play an input up to a moment; the scheduler ends with the context.

    Raises:
        LicorneError: The input cannot be read, is invalid, or is refused by the scheduler.
    """
    if options.at_ns is not None and options.after_line is not None:
        raise LicorneError("a moment (--at) and a line (--after) are two ends: name one of them")
    given = None if options.config_path is None else read_queues(options.config_path)
    resolver = None if options.users_path is None else read_users(options.users_path)
    is_replayed = checked_kind(options.input) is InputKind.TRANSCRIPT
    if options.with_forecasts and is_replayed:
        raise LicorneError(f"--forecast: {options.input.path} is a transcript, and not a workload with jobs")
    if options.after_line is not None and not is_replayed:
        raise LicorneError(f"{options.input.path} has no lines to stop after: only a transcript has (--at)")
    core = SchedulerCore(options.engine, resolver, options.threads, policies=options.policies)
    with core.scheduler as scheduler:
        yield _Replayed(options, scheduler, given).play() if is_replayed else _simulated(options, core, given)


# --------------------------------------------------------------------------------------- transcripts


@final
class _Replayed:
    """A replay that knows the line of each resource manager's configuration."""

    def __init__(self, options: PlayOptions, scheduler: Scheduler, given: GivenQueues | None) -> None:
        path = options.input.path
        self._options = options
        self._lines = read_transcript(read_text(path), str(path))
        if given is not None:
            given.check_partitions(partitions_in(self._lines))
        self._configured: dict[str, int] = {}
        configuration = None if given is None else given.text
        self._replay = Replay(scheduler, lambda _: None, configuration=configuration)

    def play(self) -> PlayedInput:
        """Replay the lines up to the moment."""
        options, scheduler = self._options, self._replay.scheduler
        last = self._lines[-1].number if self._lines else 0
        if options.after_line is not None and not 1 <= options.after_line <= last:
            raise LicorneError(f"{options.input.path} has no line {options.after_line}, the last is {last}")
        played = None
        for line in self._lines:
            if options.after_line is not None and line.number > options.after_line:
                break
            whole, part = self._part(line)
            if part is not None:
                self._play(part)
                played = part.number
            if not whole:
                break
        elapsed_ns = scheduler.now_ns() - EPOCH_2000_NS
        return PlayedInput(scheduler, elapsed_ns, played, self._where)

    def _part(self, line: Line) -> tuple[bool, Line | None]:
        """Return whether a line ends by the moment, and the part of it to play."""
        at_ns = self._options.at_ns
        if at_ns is None or line.verb != "advance":
            return True, line
        left_ns = at_ns - (self._replay.scheduler.now_ns() - EPOCH_2000_NS)
        if line.duration_ns() <= left_ns:
            return True, line
        return False, replace(line, body=left_ns) if left_ns else None

    def _play(self, line: Line) -> None:
        self._replay.run([line])
        if line.number in self._replay.refused:
            return
        if line.verb == "register":
            self._configured[line.message(si.RegisterResourceManagerRequest).rmID] = line.number
        elif line.verb == "configuration":
            self._configured[line.message(si.UpdateConfigurationRequest).rmID] = line.number

    def _where(self, position: Position) -> str:
        place = f"{position.line}:{position.column}"
        if self._options.config_path is not None:
            return f"{self._options.config_path}:{place}"
        lines = sorted(set(self._configured.values()))
        names = " or ".join(f"{self._options.input.path}:{line}" for line in lines)
        return f"{names}, configuration {place}"


# --------------------------------------------------------------------------------------- simulations


def _simulated(options: PlayOptions, core: SchedulerCore, given: GivenQueues | None) -> PlayedInput:
    """Simulate a workload up to the moment."""
    work = load_input(options.input)
    if given is not None:
        given.check_partitions()
    assert not isinstance(work, Transcript), "transcripts are replayed"
    jobs = Jobs()
    record = SimulationRecord(jobs=jobs)
    origin_ns = core.now_ns()
    text = work.default_configuration if given is None else given.text
    manager = SimulatedRM(work, core, record, text)
    driver = Driver(core, manager, record, progress=NoProgress(), stopwatch=lambda: 0.0)
    forecasts = None
    if options.with_forecasts:
        engine, until_ns = options.engine, options.at_ns
        forecasts = forecasts_of(work, jobs, manager, driver, engine=engine, until_ns=until_ns)
    driver.run(until_ns=options.at_ns, after_each=None if forecasts is None else forecasts.look)
    elapsed_ns = core.now_ns() - origin_ns
    return PlayedInput(core.scheduler, elapsed_ns, None, _place_finder(options), forecasts)


def _place_finder(options: PlayOptions) -> Where:
    """Return the function that finds a setting: in the given configuration, or in its scenario."""
    path = options.input.path
    if options.config_path is not None:
        return lambda position: f"{options.config_path}:{position.line}:{position.column}"
    if checked_kind(options.input) is not InputKind.SCENARIO:
        return lambda _: ""  # The queues were generated for a trace: they are not in a file.
    positions = read_located_yaml(path).positions

    def find(position: Position) -> str:
        own = positions.get(position.path.removeprefix(_FIRST_PARTITION).removeprefix("."))
        return "" if own is None else f"{path}:{own.line}:{own.column}"

    return find
