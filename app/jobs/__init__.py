"""The worker: leases jobs, beats, hands them to handlers, retries or buries them."""
