"""All that needs Gradio: the page's parts and what they do."""
