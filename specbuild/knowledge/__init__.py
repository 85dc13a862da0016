"""What is known beforehand: which package owns what, what projects need to be built, and how earlier builds went."""
