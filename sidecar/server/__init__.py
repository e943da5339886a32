"""The wire: proto messages in and out, statuses, and the one place where a bug is caught."""
