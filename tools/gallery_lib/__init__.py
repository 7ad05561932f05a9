"""The gallery of docs/: its list of pictures, its page, and how pictures are made."""
