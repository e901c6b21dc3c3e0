"""Two versions of ansorlite beside each other: the same cases tuned by both, and their programs timed in turns."""
