"""The seeded simulator: whole clusters under faults, determined by one number; see docs/fuzz.md."""
