"""Recorded days for the verifier: `python -m support.verify.days 400` verifies so many of the simulator.

Each is a plan of the seeded simulator on the engine `direct`, recorded with its outcomes, and a random
transcript in which much is preempted.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from support.transcripts.preemption_transcripts import preemption_transcript

from licorne import Recording, Scheduler
from licorne.proxy.fuzz.plans import drawn_plan
from licorne.proxy.fuzz.world.cluster import run_plan
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript, recording_files
from licorne.proxy.play.verify.verifier import verify_lines

_STEPS = 60


def recorded(text: str, *, anonymize: bool = False) -> list[str]:
    """Return the lines of the recording of a transcript, with its outcomes."""
    lines = read_transcript(text, "day")
    with TemporaryDirectory() as folder:
        recording = Recording(folder, outcomes=True, anonymize=anonymize)
        with Scheduler(engine="direct", stepped=True, record=recording) as scheduler:
            Replay(scheduler, lambda _: None).run(lines)
            recorded_in = scheduler.recorded_in
        assert recorded_in is not None
        files = recording_files(Path(recorded_in))
        return [line for file in files for line in file.read_text().splitlines(keepends=True)]


def preempting_day(seed: int) -> list[str]:
    """Return the recorded lines of a day in which much is preempted."""
    return recorded("\n".join(preemption_transcript(seed)))


def simulated_failure(seed: int) -> BaseException | None:
    """Return why a recorded day of the simulator fails, one whose decisions are refuted too."""
    return run_plan(replace(drawn_plan(seed, _STEPS, "direct"), is_recorded=True)).failure


def _main(count: int) -> int:
    confirmed, unjudged, failed = Counter[str](), Counter[str](), 0
    for seed in range(1, count + 1):
        failure = simulated_failure(seed)
        found = verify_lines(preempting_day(seed))
        confirmed.update(found.confirmed)
        unjudged.update(found.unjudged)
        if failure is not None or found.refuted:
            failed += 1
            sys.stdout.write(f"seed {seed}: {failure or ''} {found.refuted[:5]}\n")
            sys.stdout.flush()
    sys.stdout.write(
        f"{count} days of the simulator, and as many in which much is preempted: {failed} failed\n"
        f"of the latter: confirmed {dict(confirmed)}, not judged {dict(unjudged)}\n"
    )
    return failed > 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
