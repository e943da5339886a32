"""Runs the language-neutral cases of tests/conformance through each language's driver, and prints one matrix."""
