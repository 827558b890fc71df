"""Runs of any learner: the loop, its snapshots and history, and the state that a checkpoint holds."""
