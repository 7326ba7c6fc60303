# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.pytree import (
    all_leaves as all_leaves, default_registry as default_registry, DictKey as DictKey,
    flatten_one_level as flatten_one_level, flatten_one_level_with_keys as flatten_one_level_with_keys,
    FlattenedIndexKey as FlattenedIndexKey, GetAttrKey as GetAttrKey, is_tree_node as is_tree_node,
    KeyEntry as KeyEntry, KeyPath as KeyPath, keystr as keystr, Partial as Partial, PyTreeDef as PyTreeDef,
    register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class, register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class, register_static as register_static,
    SequenceKey as SequenceKey, tree_all as tree_all, tree_broadcast as tree_broadcast, tree_flatten as tree_flatten,
    tree_flatten_with_path as tree_flatten_with_path, tree_leaves as tree_leaves,
    tree_leaves_with_path as tree_leaves_with_path, tree_map as tree_map, tree_map_with_path as tree_map_with_path,
    tree_reduce as tree_reduce, tree_reduce_associative as tree_reduce_associative, tree_structure as tree_structure,
    tree_transpose as tree_transpose, tree_unflatten as tree_unflatten, treedef_children as treedef_children,
    treedef_is_leaf as treedef_is_leaf, treedef_tuple as treedef_tuple,
)
