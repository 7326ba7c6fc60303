"""SPMD programs with manual axes: shard_map, smap and pmap."""
