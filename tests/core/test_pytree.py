"""Pytrees: nodes, paths, maps, prefixes, and the sentences that say where two trees differ."""

from __future__ import annotations

import collections
import dataclasses
import functools
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from xlamini import tree, tree_util
from xlamini.core import pytree
from xlamini.core.pytree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr

Point = collections.namedtuple("Point", "x y")


@functools.partial(tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
@dataclasses.dataclass
class Layer:
    w: object
    name: str
    calls: int = dataclasses.field(init=False, default=0)


@tree_util.register_dataclass
@dataclasses.dataclass
class Dense:
    w: object
    activation: str = tree.static(default="relu")


@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten_with_keys(self):
        return ((GetAttrKey("a"), self.a), (GetAttrKey("b"), self.b)), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_pytree_node_class
class Plain:
    def __init__(self, *children):
        self.children = children

    def tree_flatten(self):
        return self.children, len(self.children)

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_static
class Name(str):
    pass


TREES = [
    (1, [1], "*"),
    (None, [], "None"),
    ((), [], "()"),
    ([1, (2, None)], [1, 2], "[*, (*, None)]"),
    ({"b": 1, "a": {"d": 2}}, [2, 1], "{'a': {'d': *}, 'b': *}"),
    (Point(1, [2]), [1, 2], "CustomNode(namedtuple[Point], [*, [*]])"),
    (OrderedDict(b=1, a=2), [1, 2], "CustomNode(OrderedDict[('b', 'a')], [*, *])"),
    (
        defaultdict(int, b=1, a=2),
        [2, 1],
        "CustomNode(defaultdict[(<class 'int'>, ('a', 'b'))], [*, *])",
    ),
    (Layer([1], "in"), [1], "CustomNode(Layer[('in',)], [[*]])"),
    (Dense(1), [1], "CustomNode(Dense[('relu',)], [*])"),
    (Name("a"), [], "CustomNode(Name[a], [])"),
]


@pytest.mark.parametrize("value, leaves, text", TREES)
def test_flatten_and_unflatten(value, leaves, text):
    found, treedef = tree.flatten(value)
    assert found == leaves == tree.leaves(value) == pytree.flatten(value)[0]
    assert str(treedef) == f"PyTreeDef({text})"
    assert tree.unflatten(treedef, found) == value
    assert type(tree.unflatten(treedef, found)) is type(value)
    assert treedef == tree.structure(value) and hash(treedef) == hash(tree.structure(value))
    assert treedef.num_leaves == len(leaves)


@pytest.mark.parametrize("value", [value for value, _, _ in TREES])
def test_paths_lead_to_the_leaves(value):
    pairs, treedef = tree.flatten_with_path(value)
    assert [leaf for _, leaf in pairs] == tree.leaves(value)
    assert pairs == tree.leaves_with_path(value) and treedef == tree.structure(value)
    for path, leaf in pairs:
        assert eval("x" + keystr(path), {"x": value}) == leaf


def test_defaultdict_keeps_its_factory():
    assert tree.map(lambda x: x, defaultdict(list, a=1))["missing"] == []


def test_is_leaf_stops_and_sees_none():
    assert tree.leaves([1, [2]], is_leaf=lambda x: isinstance(x, list)) == [[1, [2]]]
    assert tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    by_path = tree.leaves_with_path(
        {"a": [1, 2]}, is_leaf=lambda path, _: len(path) == 1, is_leaf_takes_path=True
    )
    assert by_path == [((DictKey("a"),), [1, 2])]
    assert tree.leaves_with_path([None], is_leaf=lambda x: x is None) == [((SequenceKey(0),), None)]


def test_keystr():
    path = (SequenceKey(0), DictKey("a"), GetAttrKey("x"), FlattenedIndexKey(3))
    assert keystr(path) == "[0]['a'].x[<flat index 3>]"
    assert keystr(path, simple=True, separator="/") == "0/a/x/3"
    assert keystr(path[:2], separator="/") == "[0]/['a']"
    assert keystr(("own",), simple=True) == "own"


def test_custom_nodes_and_their_keys():
    assert tree.leaves_with_path(Keyed(1, [2])) == [
        ((GetAttrKey("a"),), 1),
        ((GetAttrKey("b"), SequenceKey(0)), 2),
    ]
    assert tree.leaves_with_path(Plain(5)) == [((FlattenedIndexKey(0),), 5)]
    assert tree.map(lambda x: x + 1, Keyed(1, 2)).b == 3
    assert tree.map(lambda x: x + 1, Plain(1, 2)).children == (2, 3)


def test_map():
    assert tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]}) == {
        "a": 11,
        "b": [22],
    }
    assert tree.map(lambda x, y: y, [3], [(1, 2)]) == [(1, 2)]
    assert tree.map(lambda x, y: y, [3], [None]) == [None]
    assert tree.map_with_path(lambda p, x, y: (keystr(p), x, y), {"a": 1}, {"a": 2}) == {
        "a": ("['a']", 1, 2)
    }


def test_reduce():
    assert tree.reduce(lambda x, y: x - y, {"a": 1, "b": [2, 3]}) == -4
    assert tree.reduce(lambda x, y: x + y, [], 5) == 5
    with pytest.raises(TypeError):
        tree.reduce(lambda x, y: x, [])


def test_reduce_associative():
    def pair(x, y):
        return (x, y)

    assert tree.reduce_associative(pair, [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))
    assert tree.reduce_associative(pair, [1], identity=0) == 1
    assert tree.reduce_associative(pair, [], identity=0) == 0
    with pytest.raises(TypeError, match="no leaves; give an identity"):
        tree.reduce_associative(pair, [])


def test_all():
    assert tree.all([True, None, {"a": 1}]) and not tree.all([1, 0])


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert tree.transpose(outer, inner, rows) == {"a": [1, 3], "b": [2, 4]}
    assert tree.transpose(outer, None, rows) == {"a": [1, 3], "b": [2, 4]}
    assert tree.transpose(tree.structure([]), tree.structure((0,)), []) == ([],)
    with pytest.raises(TypeError, match=r"outer_treedef is a list of length 2, but the tree is a"):
        tree.transpose(outer, inner, (1, 2))
    with pytest.raises(ValueError, match=r"outer_treedef is a list of length 2, but the tree is a"):
        tree.transpose(outer, None, (1, 2))
    with pytest.raises(TypeError, match=r"inner_treedef has the keys 'b', which an inner tree"):
        tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3}])
    with pytest.raises(ValueError, match="give inner_treedef"):
        tree.transpose(tree.structure([]), None, [])


class OfLeaves:
    """A dict whose children are the leaves of its values, as haiku's FlatMap."""

    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        return self.values == other.values


tree_util.register_pytree_node(
    OfLeaves,
    lambda x: tree.flatten(x.values),
    lambda structure, leaves: OfLeaves(tree.unflatten(structure, leaves)),
)


def test_transpose_of_a_node_whose_children_are_leaves():
    outer, inner = tree.structure(OfLeaves({"a": 1, "b": 2})), tree.structure([1, 2])
    turned = tree.transpose(outer, inner, OfLeaves({"a": [3, 4], "b": [5, 6]}))
    assert turned == [OfLeaves({"a": 3, "b": 5}), OfLeaves({"a": 4, "b": 6})]
    with pytest.raises(TypeError, match="outer_treedef"):
        tree.transpose(outer, inner, OfLeaves({"a": [3, 4], "b": [5]}))


def test_transpose_counts_leaves_and_asks_for_no_node_type():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    turned = {"a": [1, 3], "b": [2, 4]}
    assert tree.transpose(outer, inner, ({"a": 1, "b": 2}, {"a": 3, "b": 4})) == turned
    assert tree.transpose(outer, inner, [[1], [2, 3, 4]]) == turned
    assert tree.transpose(outer, inner, [1, {"x": (2, 3), "y": 4}]) == turned
    assert tree.transpose(tree.structure([0]), tree.structure([]), [[]]) == []
    with pytest.raises(TypeError, match="an inner tree"):
        tree.transpose(tree.structure([0]), tree.structure([0]), [[None]])


def test_broadcast():
    assert tree.broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0}) == {"a": [1, 1], "b": 2}
    assert tree.broadcast(3, None) is None
    with pytest.raises(ValueError, match=r"broadcast: prefix_tree\['a'\] is None, but full_tree"):
        tree.broadcast({"a": None}, {"a": 3})


def test_flatten_axes():
    args = tree.structure((1, {"a": 2, "b": None}, [3, 4]))
    assert pytree.flatten_axes("vmap", 0, args) == [0, 0, 0, 0]
    assert pytree.flatten_axes("vmap", None, args) == [None] * 4
    assert pytree.flatten_axes("vmap", (0, None, [1, None]), args) == [0, None, 1, None]
    with pytest.raises(
        ValueError, match=r"^vmap: in_axes\[2\] is a list of length 1, but args\[2\]"
    ):
        pytree.flatten_axes("vmap", (0, 0, [1]), args)
    with pytest.raises(
        ValueError, match=r"in_axes\[0\] is a tuple of length 1.*args\[0\] is a leaf;"
    ):
        pytree.flatten_axes("vmap", ((0,), 0, 0), args)


DIFFERENCES = [
    ([1], [1, 2], "a is a list of length 1, but b is a list of length 2"),
    ((1,), [1], "a is a tuple of length 1, but b is a list of length 1"),
    (1, [1], "a is a leaf of type int, but b is a list of length 1"),
    ({"k": [1]}, {"k": None}, "a['k'] is a list of length 1, but b['k'] is None"),
    ({"x": 1, "y": 2}, {"x": 1}, "a has the keys 'y', which b lacks"),
    ({"x": 1}, {"x": 1, "y": 2}, "b has the keys 'y', which a lacks"),
    ({"w": 1}, {"W": 1}, "a has the keys 'w', where b has 'W'"),
    (
        dict.fromkeys("abcdefg"),
        {},
        "a has the keys 'a', 'b', 'c', 'd', 'e' and 2 more, which b lacks",
    ),
    (Point(1, [2]), Point(1, [2, 3]), "a.y is a list of length 1, but b.y is a list of length 2"),
    (Point(1, 2), (1, 2), "a is a Point with 2 children, but b is a tuple of length 2"),
    (Keyed(1, (2,)), Keyed(1, 2), "a.b is a tuple of length 1, but b.b is a leaf of type int"),
    (Plain(1), Plain(1, 2), "a is a Plain with 1 child, but b is a Plain with 2 children"),
    (
        [Layer(1, "in")],
        [Layer(1, "out")],
        "a[0] is a Layer with 1 child with metadata ('in',), "
        "but b[0] is a Layer with 1 child with metadata ('out',)",
    ),
]


@pytest.mark.parametrize("a, b, sentence", DIFFERENCES)
def test_first_difference(a, b, sentence):
    assert pytree.first_difference(a, b, ("a", "b")) == sentence


def test_first_difference_of_treedefs():
    a, b = tree.structure({"k": (1, 2)}), tree.structure({"k": (1, [2])})
    assert pytree.first_difference(a, b) == (
        "the first['k'][1] is a leaf, but the second['k'][1] is a list of length 1"
    )
    assert pytree.first_difference(a, a) is None


def test_first_difference_with_prefix():
    assert pytree.first_difference([1, 2], [(3, 4), 5], prefix=True) is None
    assert pytree.first_difference([(1,), 2], [(3, 4), 5], prefix=True) is not None


UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
trees = st.recursive(
    st.integers(0, 3) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
)


@pytest.mark.full
@UNTIMED
@given(trees, trees)
def test_a_difference_is_found_exactly_when_the_structures_differ(a, b):
    same = tree.structure(a) == tree.structure(b)
    assert (pytree.first_difference(a, b) is None) is same


@UNTIMED
@given(trees)
def test_map_keeps_structure(a):
    assert tree.map(lambda x: x, a) == a
    assert tree.broadcast(7, a) == tree.map(lambda _: 7, a)


@pytest.mark.parametrize(
    "call, text",
    [
        (tree.map, r"tree.map: tree\['b'\] is a list of length 2, but rest\[0\]\['b'\] is a list"),
        (tree.map_with_path, r"tree.map_with_path: tree\['b'\] is a list of length 2"),
    ],
)
def test_map_says_where_trees_differ(call, text):
    with pytest.raises(ValueError, match=text):
        call(lambda *xs: xs, {"a": 1, "b": [2, 3]}, {"a": 1, "b": [2]})


def test_unflatten_counts():
    with pytest.raises(ValueError, match="expected 2, got 1"):
        tree.unflatten(tree.structure([0, 0]), [1])


def test_partial():
    partial = tree_util.Partial(max, 1, key=abs)
    assert partial(-3) == -3
    leaves, treedef = tree.flatten(tree_util.Partial(pow, 2, mod=5))
    assert leaves == [2, 5] and tree.unflatten(treedef, [3, 5])(2) == 4
    assert [keystr(p) for p, _ in tree.leaves_with_path(partial)] == [
        ".args[0]",
        ".keywords['key']",
    ]
    assert pickle.loads(pickle.dumps(partial))(-3) == -3


def test_partial_of_a_partial_keeps_the_inner_arguments_static():
    inner = functools.partial(pow, 2)
    outer = tree_util.Partial(inner, 3)
    assert tree.leaves(outer) == [3] and outer() == 8
    assert tree.structure(outer) == tree.structure(tree_util.Partial(inner, 3))
    assert tree.structure(outer) != tree.structure(tree_util.Partial(functools.partial(pow, 2), 3))


def test_one_level():
    assert tree_util.flatten_one_level({"a": [1]})[0] == ([1],)
    assert list(tree_util.flatten_one_level_with_keys([7])[0]) == [(SequenceKey(0), 7)]
    with pytest.raises(ValueError, match="a leaf of type int has no children"):
        tree_util.flatten_one_level(1)


def test_treedefs():
    treedef = tree.structure([1, (2,)])
    assert tree_util.treedef_children(treedef) == [tree.structure(1), tree.structure((2,))]
    assert tree_util.treedef_tuple(iter([treedef])) == tree.structure(([1, (2,)],))
    assert tree_util.treedef_is_leaf(tree.structure(1)) and not tree_util.treedef_is_leaf(treedef)
    assert tree_util.is_tree_node(dict) and not tree_util.is_tree_node(int)


def test_all_leaves():
    assert tree_util.all_leaves([1, "a"]) and not tree_util.all_leaves([1, None])
    assert tree_util.all_leaves([[1]], is_leaf=lambda x: isinstance(x, list))
    assert not tree_util.all_leaves([None, [1]], is_leaf=lambda x: isinstance(x, list))


@dataclasses.dataclass
class Unregistered:
    a: int
    b: int


class NoDataclass:
    pass


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: tree_util.register_dataclass(Layer), ValueError, "Layer is a pytree node already"),
        (lambda: tree_util.register_static(dict), ValueError, "dict is a pytree node already"),
        (lambda: tree_util.register_dataclass(3), TypeError, "only a class"),
        (lambda: tree_util.register_dataclass(NoDataclass), TypeError, "needs data_fields and"),
        (lambda: tree_util.register_dataclass(Unregistered, ["a"]), TypeError, "may both be left"),
        (
            lambda: tree_util.register_dataclass(Unregistered, ["a"], []),
            ValueError,
            r"missing \['b'\], unknown \[\]",
        ),
        (
            lambda: tree_util.register_dataclass(Unregistered, ["a", "c"], ["b"]),
            ValueError,
            r"missing \[\], unknown \['c'\]",
        ),
        (
            lambda: tree_util.register_dataclass(Unregistered, ["a", "b"], ["b"]),
            ValueError,
            r"\['b'\] are in data_fields and in meta_fields",
        ),
        (
            lambda: tree_util.register_pytree_node_class(NoDataclass),
            AttributeError,
            "needs a method tree_flatten",
        ),
    ],
)
def test_wrong_registrations(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_register_dataclass_drops_fields():
    @dataclasses.dataclass
    class Cached:
        w: int
        cache: object = None

    tree_util.register_dataclass(Cached, ["w"], [], drop_fields=["cache"])
    assert tree.map(lambda x: x + 1, Cached(1, "big")) == Cached(2, None)


@pytest.mark.full
def test_import_says_when_jax_is_loaded():
    code = """
import collections, sys, types
from jaxlib._jax import pytree
sys.modules["jax"] = types.ModuleType("jax")
pytree.default_registry().register_node(collections.OrderedDict, list, dict)
import xlamini.core.pytree
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: jax has been imported in this process" in result.stderr
