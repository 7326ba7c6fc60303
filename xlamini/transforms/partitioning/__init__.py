"""custom_partitioning: functions that tell XLA's partitioner how to divide them among devices."""
