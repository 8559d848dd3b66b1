"""What operators ask the gateway on its admin port: records, learned facts, metrics, the dashboard."""
