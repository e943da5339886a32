"""docs/contract.md: its tables made from the proto files and from the code, its wire examples by a stranger's tools."""
