"""Progress of whole jobs: on a terminal, as plain lines, and as JSON lines for other programs."""
