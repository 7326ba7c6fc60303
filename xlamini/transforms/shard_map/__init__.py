"""Programs written for one device of a mesh: shard_map."""
