"""Messages and stubs of the package turnledger.v1, generated from proto/ by `make stubs`."""
