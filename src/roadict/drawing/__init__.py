"""Drawing for pages: SVG charts, pictures of atoms, HTML templates."""
