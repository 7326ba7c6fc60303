# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.partitioning.custom_partitioning import custom_partitioning as custom_partitioning
from xlamini.transforms.partitioning.primitive import custom_partitioning_p as custom_partitioning_p
from xlamini.transforms.partitioning.sharding_rule import (
    ArrayMapping as ArrayMapping, BATCHING as BATCHING, CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
)
