"""Small helpers that several test folders share: a real sidecar, real files, real faults."""
