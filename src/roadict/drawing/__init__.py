"""Drawing for pages: SVG charts, pictures of atoms, HTML templates; and figures of what was chosen."""
