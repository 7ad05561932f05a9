"""HTML pages: the document, its palette, columns of texts, and the scripts of all pages."""
