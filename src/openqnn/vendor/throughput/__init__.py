"""Several models, backends and threads at once, as qnn-throughput-net-run runs them."""
