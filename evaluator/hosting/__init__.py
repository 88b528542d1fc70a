"""Rules of users' own files: the side of the process that imports and judges them."""
