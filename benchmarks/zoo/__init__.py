"""The zoo: small training programs whose runs are known to be healthy or to have one fault, planted in them."""
