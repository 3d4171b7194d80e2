"""The report of a health check, and its document."""

from __future__ import annotations

from typing import NamedTuple

from ..documents.monitoring import HealthDocument


class HealthCheck(NamedTuple):
    """The outcome of one check."""

    name: str
    description: str
    succeeded: bool
    diagnosis: str


class HealthReport(NamedTuple):
    """The outcome of all checks."""

    made_at_ns: int
    """Nanoseconds since 1970."""
    checks: tuple[HealthCheck, ...]

    @property
    def healthy(self) -> bool:
        """Whether all checks have succeeded."""
        return all(check.succeeded for check in self.checks)


def health_document(report: HealthReport) -> HealthDocument:
    """Return the document of a report, as the REST interface shows it."""
    return {
        "Healthy": report.healthy,
        "HealthChecks": [
            {
                "Name": check.name,
                "Succeeded": check.succeeded,
                "Description": check.description,
                "DiagnosisMessage": check.diagnosis,
            }
            for check in report.checks
        ],
    }
