"""What the sidecar does for its callers, in the domain's words: no proto, no SQL, no gRPC."""
