"""What was computed or measured once, and is kept for the processes to come: one folder of files, each by its key."""
