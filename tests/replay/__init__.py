"""Whole conversations through the client into a real sidecar process."""
