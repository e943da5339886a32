"""The ledger's rules as plain functions over frozen dataclasses: no clock, no randomness, no I/O."""
