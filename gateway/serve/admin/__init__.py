"""The endpoints of the admin port: records, learned facts, metrics, the dashboard."""
