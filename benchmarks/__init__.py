"""Measurements of the program, as ratios in one run."""
