"""Rules about the data that training is given."""
