"""The arithmetic of an iteration: the paper literally, and the fused recurrence."""
