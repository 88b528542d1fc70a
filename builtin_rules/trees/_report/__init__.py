"""What CreateXgboostReport is made of: what is computed of a step, what a section shows, and the page."""
