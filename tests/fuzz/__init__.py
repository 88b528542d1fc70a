"""Fuzzing: whatever bytes a trial holds, reading them ends in values or in a documented error, within bounds."""
