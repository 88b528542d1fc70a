"""What writers of trials stand on: whole files, a limit to the disk they take, the file that stops a run."""
