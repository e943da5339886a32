"""An example engine: webhooks in, turns that know what was said and done before, replies out.

Read `turn.py` first, which is the one file about the ledger. `README.md` has the map.
"""
