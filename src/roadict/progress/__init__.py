"""Progress of long work: on a terminal, as plain lines, and as JSON lines for other programs."""
