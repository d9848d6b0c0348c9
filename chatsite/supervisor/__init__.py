"""The embedded default: one process that starts, watches and stops all the others."""
