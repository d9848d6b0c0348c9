"""What exports and imports share: files, leases, their way to Celery."""
