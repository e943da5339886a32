"""What the Makefile runs and no release ships."""
