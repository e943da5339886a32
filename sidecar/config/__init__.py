"""The sidecar's settings: one YAML file, variables and options, judged whole; the live ones kept up to date."""
