"""Ten controllers, a thousand simulated devices, a hundred thousand queued jobs: what breaks first."""
