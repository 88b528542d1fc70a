"""How fast the program is, beside the reference reader and beside the least that has to be done."""
