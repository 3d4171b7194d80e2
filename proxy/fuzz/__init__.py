"""The seeded simulator: whole clusters under faults, decided by one number; see docs/fuzz.md."""
