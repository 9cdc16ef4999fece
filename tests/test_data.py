"""Splits use every sample once; data sets are what they say they are."""

from __future__ import annotations

import gzip
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets

from proxgt import EmpiricalRisk
from proxgt.data import DATASETS, SPLITS, load, normalized, read_libsvm, shard

A9A = Path("/work/shared/data")


def parts_of(data):
    """The shards as a list of tuples, whether they came stacked or as a list."""
    if isinstance(data, list):
        return data
    return list(zip(*data, strict=True))


# shard -------------------------------------------------------------------------------------


@st.composite
def splits(draw):
    total = draw(st.integers(1, 60))
    return {
        "total": total,
        "nodes": draw(st.integers(1, total)),
        "how": draw(st.sampled_from(SPLITS)),
        "labels": np.array(draw(st.lists(st.integers(-2, 2), min_size=total, max_size=total))),
        "concentration": draw(st.sampled_from([1e-3, 0.1, 1.0, 100.0])),
        "seed": draw(st.integers(0, 5)),
    }


@settings(max_examples=150, deadline=None)
@given(splits())
def test_every_sample_goes_to_exactly_one_node(case):
    total, nodes = case.pop("total"), case.pop("nodes")
    labels = case.pop("labels")
    index = np.arange(total)
    features = np.stack([index, 10.0 * index], axis=1)
    data = shard((features, index, labels), nodes, **case)
    parts = parts_of(data)
    assert len(parts) == nodes
    sizes = [len(part[1]) for part in parts]
    assert min(sizes) >= 1
    np.testing.assert_array_equal(np.sort(np.concatenate([p[1] for p in parts])), index)
    for a, i, label in parts:
        np.testing.assert_array_equal(a, features[i])
        np.testing.assert_array_equal(label, labels[i])
    assert isinstance(data, list) == (len(set(sizes)) > 1)
    if case["how"] != "dirichlet":
        assert max(sizes) - min(sizes) <= 1
    again = parts_of(shard((features, index, labels), nodes, **case))
    for one, other in zip(parts, again, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_equal_shards_come_stacked_and_unequal_ones_as_a_list_that_a_risk_takes():
    features, labels = np.ones((12, 3)), np.arange(12)
    equal = shard({"a": features, "l": labels}, 4)
    assert equal["a"].shape == (4, 3, 3)
    assert equal["l"].shape == (4, 3)
    unequal = shard((features, labels), 5)
    assert [len(part[1]) for part in unequal] == [3, 3, 2, 2, 2]
    risk = EmpiricalRisk(lambda x, s: s[0] @ x, unequal, x0=np.zeros(3))
    np.testing.assert_array_equal(risk.data.count, [3, 3, 2, 2, 2])


def test_contiguous_keeps_the_order():
    parts = shard(np.arange(32), 8, "contiguous")
    np.testing.assert_array_equal(parts, np.arange(32).reshape(8, 4))


def test_iid_depends_on_the_seed_and_moves_samples():
    one, other = (shard(np.arange(100), 4, seed=seed) for seed in (0, 1))
    assert (one != other).any()
    assert (one != np.arange(100).reshape(4, 25)).any()


def test_label_gives_each_node_a_range_of_labels():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 200)
    parts = shard((np.arange(200), labels), 10, "label")[1]
    assert all(a.max() <= b.min() for a, b in pairwise(parts))
    assert max(len(np.unique(part)) for part in parts) <= 3


def test_labels_may_be_names_and_apart_from_the_arrays():
    names = np.array(["left", "right"] * 8)
    first, second = shard(np.arange(16), 2, "label", labels=names)
    assert set(names[first]) == {"left"}
    assert set(names[second]) == {"right"}


def test_dirichlet_shares_have_the_moments_of_the_distribution():
    nodes, total, concentration = 4, 2000, 0.5
    shares = []
    for seed in range(200):
        data = shard(
            (np.arange(total), np.zeros(total)),
            nodes,
            "dirichlet",
            concentration=concentration,
            seed=seed,
        )
        shares.append(len(parts_of(data)[0][0]) / total)
    # Dirichlet(c, ..., c): mean 1/n, variance (1/n)(1 - 1/n) / (n c + 1).
    variance = (1 / nodes) * (1 - 1 / nodes) / (nodes * concentration + 1)
    assert abs(np.mean(shares) - 1 / nodes) < 4 * np.sqrt(variance / 200)
    assert 0.7 < np.var(shares) / variance < 1.3


def test_dirichlet_is_even_where_the_concentration_is_large():
    labels = np.repeat(np.arange(5), 400)
    parts = parts_of(shard((np.arange(2000), labels), 4, "dirichlet", concentration=1e6))
    counts = np.array([np.bincount(part[1], minlength=5) for part in parts])
    assert abs(counts - 100).max() <= 3


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.ones(3), 4), {}, ValueError, r"nodes must be at most .* 3, got 4"),
        ((np.ones(3), 0), {}, ValueError, r"nodes must be an integer >= 1, got 0"),
        ((np.ones(3), 2, "idd"), {}, ValueError, r"how must be one of .*'idd'; .* 'iid'"),
        ((np.ones(3), 2), {"seed": -1}, ValueError, r"seed must be .* >= 0, got -1"),
        ((np.ones(3), 2), {"concentration": 0}, ValueError, r"concentration must be > 0"),
        (([np.ones(3), np.ones(3)], 2), {}, TypeError, r"arrays .* list.*write \(features"),
        (((np.ones(3), np.ones(4)), 2), {}, ValueError, r"same number N .*\[3, 4\]"),
        (((), 2), {}, ValueError, r"arrays must hold at least one array"),
        (((np.ones(3), 1.0), 2), {}, ValueError, r"arrays\[1\] must have shape .* scalar"),
        ((np.array(["a", "b"]), 2), {}, TypeError, r"arrays must be a numeric array"),
        ((np.ones((3, 2)), 2, "label"), {}, ValueError, r"labels is needed"),
        (
            (np.ones((3, 2)), 2, "dirichlet"),
            {"labels": np.ones(4)},
            ValueError,
            r"labels must have shape \(3,\).*\(4,\)",
        ),
        (
            ((np.ones((2, 2)), np.array([1.0, np.nan])), 2, "dirichlet"),
            {},
            ValueError,
            r"labels must be finite, but entry \(1,\)",
        ),
    ],
)
def test_shard_refuses(arguments, options, error, message):
    with pytest.raises(error, match=message):
        shard(*arguments, **options)


def test_shard_says_how_to_give_a_sparse_matrix():
    from scipy.sparse import eye_array

    with pytest.raises(TypeError, match=r"arrays\[0\] must be .*toarray"):
        shard((eye_array(4).tocsr(), np.ones(4)), 2)


# data sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [
        ("breast_cancer", (569, 30), [-1, 1]),
        ("digits_parity", (1797, 64), [-1, 1]),
        ("digits", (1797, 64), range(10)),
        ("wine", (178, 13), range(3)),
        ("iris", (150, 4), range(3)),
        ("diabetes", (442, 10), None),
    ],
)
def test_load_standardises(name, shape, labels):
    features, found = load(name, dtype="float64")
    assert features.shape == shape
    assert found.shape == shape[:1]
    deviation = features.std(axis=0)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(deviation[deviation > 0], 1, rtol=1e-12)
    if labels is None:
        np.testing.assert_allclose([found.mean(), found.std()], [0, 1], atol=1e-12)
    else:
        assert found.dtype.kind == "i"
        assert set(found) == set(labels)


def test_the_table_of_data_sets_is_complete():
    assert set(DATASETS) == set(re.findall(r'\| "(\w+)"', load.__doc__ or ""))


def test_binary_labels_mean_what_the_table_says():
    raw = datasets.load_breast_cancer()
    malignant = raw.target == list(raw.target_names).index("malignant")
    np.testing.assert_array_equal(load("breast_cancer")[1] == -1, malignant)
    digits = datasets.load_digits().target
    np.testing.assert_array_equal(load("digits_parity")[1] == 1, digits % 2 == 0)


def test_load_keeps_single_precision_by_default_and_takes_other_normalizations():
    features, targets = load("diabetes")
    assert features.dtype == targets.dtype == np.float32
    raw, _ = load("wine", normalize="none", dtype="float64")
    np.testing.assert_array_equal(raw, datasets.load_wine().data)


def test_normalized():
    features = np.array([[0.1, 3.0, 0.0], [0.1, 4.0, 0.0], [0.1, 8.0, 0.0]])
    columns = normalized(features, "columns")
    np.testing.assert_array_equal(columns[:, [0, 2]], 0)
    np.testing.assert_allclose(columns[:, 1], (features[:, 1] - 5) / np.sqrt(14 / 3))
    rows = normalized(np.array([[3.0, 4.0], [0.0, 0.0]]), "rows")
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]])
    with pytest.raises(ValueError, match=r"normalize must be one of .*'column'.*mean 'columns'"):
        normalized(features, "column")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "brest_cancer"}, r"name must be one of .* mean 'breast_cancer'"),
        ({"name": "wine", "dtype": "float16"}, r"dtype must be one of .* got 'float16'"),
        ({"name": "wine", "normalize": "row"}, r"normalize must be one of .* mean 'rows'"),
    ],
)
def test_load_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        load(**options)


# files -------------------------------------------------------------------------------------


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 5)) * (rng.random((7, 5)) < 0.5)


def write(path, matrix, labels):
    datasets.dump_svmlight_file(matrix, labels, str(path), zero_based=False)
    return path


def write_npz(path, matrix, labels, **members):
    from scipy.sparse import csr_array

    m = csr_array(matrix)
    held = {"data": m.data, "indices": m.indices, "indptr": m.indptr, "shape": m.shape}
    np.savez(path, **(held | {"y": labels} | members))
    return path


def test_read_libsvm_text(tmp_path, matrix):
    matrix[:, 4] = 0  # does not occur in the file
    path = write(tmp_path / "data.txt", matrix, np.array([2, 1, 1, 2, 2, 1, 1]))
    features, labels = read_libsvm(path, features=5, dtype="float64")
    np.testing.assert_allclose(features, matrix, rtol=1e-12)
    np.testing.assert_array_equal(labels, [1, -1, -1, 1, 1, -1, -1])
    assert read_libsvm(path)[0].shape == (7, 4)
    assert read_libsvm(path)[0].dtype == np.float32
    zipped = tmp_path / "data.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_libsvm(zipped)[0], read_libsvm(path)[0])


def test_read_libsvm_keeps_classes_and_real_targets(tmp_path, matrix):
    classes = np.array([3, 1, 2, 2, 2, 1, 1])
    found = read_libsvm(write(tmp_path / "c", matrix, classes))[1]
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, classes)
    targets = np.linspace(-1, 1, 7)
    found = read_libsvm(write(tmp_path / "t", matrix, targets), dtype="float64")[1]
    np.testing.assert_allclose(found, targets)


def test_read_libsvm_npz(tmp_path, matrix):
    path = write_npz(tmp_path / "data.npz", matrix, np.array([0, 1, 1, 0, 0, 1, 1]))
    features, labels = read_libsvm(path, normalize="rows", dtype="float64")
    np.testing.assert_array_equal(labels, [-1, 1, 1, -1, -1, 1, 1])
    lengths = np.linalg.norm(matrix, axis=1)
    np.testing.assert_allclose(features * lengths[:, None], matrix)


@pytest.mark.skipif(not (A9A / "a9a_train.npz").is_file(), reason=f"a9a is not in {A9A}")
def test_read_a9a():
    features, labels = read_libsvm(A9A / "a9a_train.npz", features=123, normalize="rows")
    assert features.shape == (32561, 123)
    assert features.dtype == np.float32
    assert (labels == 1).sum() == 7841  # as the Adult data set says: 24.08 %
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-6)
    parts = shard((features, labels), 8, "contiguous")
    assert sorted({len(part[1]) for part in parts}) == [4070, 4071]


def test_read_libsvm_refuses(tmp_path, matrix):
    with pytest.raises(FileNotFoundError, match=r"path must be a file .*nothing\.txt"):
        read_libsvm(tmp_path / "nothing.txt")
    labels = np.ones(7)
    lacking = tmp_path / "lacking.npz"
    np.savez(lacking, data=labels)
    with pytest.raises(ValueError, match=r"lacking\.npz.* it must hold data.* lacks .*'y'"):
        read_libsvm(lacking)
    short = write_npz(tmp_path / "short.npz", matrix, labels[:3])
    with pytest.raises(ValueError, match=r"y must have shape \(7,\), one per row, got \(3,\)"):
        read_libsvm(short)
    outside = write_npz(tmp_path / "outside.npz", matrix, labels, shape=(7, 2))
    with pytest.raises(ValueError, match=r"outside\.npz.* could not be read"):
        read_libsvm(outside)
    garbage = tmp_path / "garbage.npz"
    garbage.write_bytes(b"PK\x03\x04 not a zip file")
    with pytest.raises(ValueError, match=r"garbage\.npz.* could not be read"):
        read_libsvm(garbage)
    text = tmp_path / "text.txt"
    text.write_text("a b c\n")
    with pytest.raises(ValueError, match=r"text\.txt.* could not be read"):
        read_libsvm(text)
    good = write_npz(tmp_path / "good.npz", matrix, labels)
    with pytest.raises(ValueError, match=r"features must be 5, .* got 6"):
        read_libsvm(good, features=6)
    with pytest.raises(ValueError, match=r"features must be an integer >= 1, got 0"):
        read_libsvm(good, features=0)
    with pytest.raises(ValueError, match=r"dtype must be one of"):
        read_libsvm(good, dtype="half")
    with pytest.raises(ValueError, match=r"labels must be finite, but entry \(0,\)"):
        read_libsvm(write_npz(tmp_path / "nan.npz", matrix, labels * np.nan))
