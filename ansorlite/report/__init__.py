"""What a person looks at: progress while tuning runs, and tables afterwards."""
