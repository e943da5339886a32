"""Attempts to break the product, as experiments: in full by `make torture`, in a quick form by `make test`."""
