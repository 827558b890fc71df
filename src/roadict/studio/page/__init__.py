"""The page's components and their events: all that needs Gradio."""
