"""One strategy a file, behind one dispatcher."""
