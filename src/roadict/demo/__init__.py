"""The demo: its page, for the first minutes with roadict."""
