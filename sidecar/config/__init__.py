"""The sidecar's settings: one YAML file, checked whole."""
