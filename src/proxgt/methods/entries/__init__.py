"""The table of methods, a family a file: see `proxgt.methods.table`."""
