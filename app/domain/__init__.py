"""The words of the service: documents, passages, jobs, ports and errors. No I/O, no framework."""
