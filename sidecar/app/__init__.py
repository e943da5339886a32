"""The process: everything is wired here, once, and started and stopped in order."""
