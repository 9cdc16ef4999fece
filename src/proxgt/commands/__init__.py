"""The commands of `proxgt`, one a module, and what they share."""
