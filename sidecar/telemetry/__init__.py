"""What operators see. Sizes, counts and ids; never a word of an entry."""
