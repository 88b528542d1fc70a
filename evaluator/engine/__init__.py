"""Where summaries of saved tensors are computed."""
