"""Rules about a run as a whole: whether it goes on, and whether it repeats another one."""
