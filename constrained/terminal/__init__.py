"""What the command line shows and runs: the form that fills itself, reports, one local request, the service in this process."""
