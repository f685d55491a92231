"""One file a change of the schema; files are named r<number>_<what>."""
