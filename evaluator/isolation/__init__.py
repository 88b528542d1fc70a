"""Rules of users' own files, each judged in a process of its own: the side of the job."""
