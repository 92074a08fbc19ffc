"""Tests of learned backtracking: forests, samples, models, and what a search makes of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memplan as mp
from memplan import _published
from memplan.base.errors import FormatError, MemplanError, MissingExtraError
from memplan.extensions.published import backtracking
from memplan_lab import bench, learn
from memplan_lab.bench import generators
from memplan_lab.learn import merit
from memplan_lab.learn.evaluating import Row, Run
from memplan_lab.learn.samples import Samples
from memplan_lab.learn.training import columns_of

pytestmark = pytest.mark.slow

WIDTH = len(backtracking.features())


def grow_trees(seed: int, trees: int, splits: int) -> dict[str, np.ndarray]:
    """Return the columns of trees that are split at random leaves."""
    chance = np.random.default_rng(seed)
    feature, threshold, left, right, value, root = [], [], [], [], [], []

    def leaf() -> int:
        at = len(feature)
        feature.append(0)
        threshold.append(0.0)
        left.append(at)
        right.append(at)
        value.append(float(chance.integers(64)) / 8)  # sums of eighths are exact
        return at

    for _ in range(trees):
        leaves = [leaf()]
        root.append(leaves[0])
        for _ in range(splits):
            node = leaves.pop(chance.integers(len(leaves)))
            feature[node], threshold[node] = chance.integers(WIDTH), chance.integers(8)
            value[node] = 0.0
            left[node], right[node] = leaf(), leaf()
            leaves += [left[node], right[node]]
    integers = {"feature": feature, "left": left, "right": right, "root": root}
    return {
        **{name: np.array(cells, dtype=np.int32) for name, cells in integers.items()},
        "threshold": np.array(threshold, dtype=np.float32),
        "value": np.array(value),
    }


def sum_leaves(columns: dict[str, np.ndarray], row: np.ndarray) -> float:
    """Return the sum over the trees, by the definition."""
    total = 0.0
    for node in columns["root"]:
        while columns["left"][node] != node:
            below = row[columns["feature"][node]] <= columns["threshold"][node]
            node = columns["left" if below else "right"][node]
        total += columns["value"][node]
    return total


@pytest.fixture(scope="module")
def samples() -> Samples:
    """Return samples of a few small problems."""
    instances = learn.of_seeds("synthetic", range(1000, 1004), [20])
    return learn.collect(instances, runs=1, steps=3_000, oracle_nodes=1_000)


@pytest.fixture
def model() -> backtracking.Model:
    """Return a model whose trees are drawn by lot."""
    return backtracking.Model(grow_trees(1, 5, 6), 2.5, 0.25, {"by": "lot"})


def outcome(status: bool, backtracks: int, seconds: float = 0.0) -> Run:
    """Return one search."""
    return Run(status, backtracks, seconds)


# Forests


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_a_plain_walk(seed: int) -> None:
    """Tests the forest against a walk down its trees, one by one."""
    columns = grow_trees(seed, trees=seed * 5, splits=seed * 4)
    rows = np.random.default_rng(seed).integers(8, size=(33, WIDTH)).astype(np.float32)
    scores = _published.Forest(**columns).score(rows)
    assert scores.tolist() == [sum_leaves(columns, row) for row in rows]


def test_scores_are_those_of_lightgbm() -> None:
    """Tests that a booster and the columns made of it say the same of any row."""
    lightgbm = pytest.importorskip("lightgbm")
    chance = np.random.default_rng(3)
    rows = chance.normal(size=(2_000, WIDTH)).astype(np.float32)
    target = np.sin(3 * rows[:, 0]) + rows[:, 1] * rows[:, 2] > chance.normal(size=2_000)
    settings = {"objective": "regression", "num_threads": 1, "verbosity": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, target.astype(float)), 30)
    forest = _published.Forest(**columns_of(booster))
    # Rows that lie on thresholds, and next to them, are kept apart as well.
    edges = columns_of(booster)["threshold"][:500, None].repeat(WIDTH, axis=1)
    for each in (rows, edges, np.nextafter(edges, np.float32(np.inf))):
        np.testing.assert_allclose(forest.score(each), booster.predict(each), rtol=0, atol=1e-5)


def test_columns_that_are_no_forest_are_refused() -> None:
    """Tests that a child that goes back, or is not there, is an error and no endless walk."""
    for name, node, cell in (("left", 0, 0), ("right", 0, 99), ("root", 0, -1), ("feature", 0, -1)):
        columns = grow_trees(0, 1, 1)
        columns[name][node] = cell
        with pytest.raises(ValueError, match="forest"):
            _published.Forest(**columns)


# Samples


def test_scores_follow_section_6_4() -> None:
    """Tests the score on one backtrack: 0 below M and above B, and falling from B to M."""
    levels = [9, 7, 5, 3, 1]
    one = Samples(
        features=np.zeros((5, WIDTH), np.float32),
        level=np.array(levels, np.int32),
        impasse=np.zeros(5, np.int32),
        length=np.array([10], np.int32),
        solvable=np.array([8], np.int32),  # M is level 7
        shared=np.array([4], np.int32),  # B is level 3
        recipe={},
    )
    assert one.scores().tolist() == [0, 10 - 5 * 4 / 5, 10 - 5 * 2 / 5, 10, 0]
    lost = replace(one, solvable=np.array([0], np.int32), shared=np.array([0], np.int32))
    assert lost.scores().tolist() == [0] * 5  # no target is far enough


def test_labels_agree_with_each_other(samples: Samples) -> None:
    """Tests that the solution found is one, and that targets are decisions of their path."""
    assert len(samples.length) > 20
    assert (samples.shared <= samples.solvable).all()
    assert (samples.solvable <= samples.length).all()
    assert (samples.level < samples.length[samples.impasse]).all()
    assert (np.diff(samples.impasse) >= 0).all()
    assert samples.scores().max() == 10
    level = backtracking.features().index("level")
    assert (samples.features[:, level] == samples.level).all()


def test_collecting_repeats(samples: Samples, tmp_path: Path) -> None:
    """Tests that the same seeds give the same file, and another seed another."""
    files = [tmp_path / name for name in ("first.npz", "second.npz", "third.npz")]
    samples.save(files[0])
    for file, seed in zip(files[1:], (0, 7), strict=True):
        instances = learn.of_seeds("synthetic", range(1000, 1004), [20])
        learn.collect(instances, runs=1, steps=3_000, oracle_nodes=1_000, seed=seed).save(file)
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


def test_samples_survive_the_disk(samples: Samples, tmp_path: Path) -> None:
    """Tests that what is loaded is what was saved."""
    samples.save(tmp_path / "samples.npz")
    loaded = learn.load(tmp_path / "samples.npz")
    assert loaded.recipe == samples.recipe
    assert (loaded.features == samples.features).all()
    assert (loaded.scores() == samples.scores()).all()


def test_joined_samples_keep_their_backtracks_apart(samples: Samples) -> None:
    """Tests that two halves score as they did alone."""
    both = learn.join([samples, samples])
    assert both.scores().tolist() == [*samples.scores(), *samples.scores()]
    assert len(both.length) == 2 * len(samples.length)
    assert learn.join([]).scores().tolist() == []


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.7, 0.999])
def test_truncated_samples_are_refused(samples: Samples, tmp_path: Path, share: float) -> None:
    """Tests that a file that was cut off is an error in one sentence."""
    file = tmp_path / "samples.npz"
    samples.save(file)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(FormatError, match="learn collect"):
        learn.load(file)


def test_other_files_are_no_samples(samples: Samples, tmp_path: Path) -> None:
    """Tests that other arrays, and columns that do not fit each other, are refused."""
    file = tmp_path / "other.npz"
    np.savez(file, about=np.array("{}"), level=np.zeros(3))
    with pytest.raises(FormatError, match="learn collect"):
        learn.load(file)
    np.save(tmp_path / "other.npy", np.zeros(3))
    with pytest.raises(FormatError, match="learn collect"):
        learn.load(tmp_path / "other.npy")
    replace(samples, impasse=samples.impasse + np.int32(1)).save(file)
    with pytest.raises(FormatError, match="belong together"):
        learn.load(file)
    replace(samples, length=samples.length[:-1]).save(file)
    with pytest.raises(FormatError, match="belong together"):
        learn.load(file)
    with pytest.raises(FormatError, match="cannot be read"):
        learn.load(tmp_path / "none.npz")


# Models


def test_models_survive_the_disk(model: backtracking.Model, tmp_path: Path) -> None:
    """Tests that what is read is what was written, to the last bit."""
    file = tmp_path / "model.json"
    file.write_text(model.text())
    again = backtracking.read(file)
    assert again.text() == model.text()
    rows = np.random.default_rng(0).normal(size=(50, WIDTH)).astype(np.float32)
    assert (again.forest().score(rows) == model.forest().score(rows)).all()


@given(st.data())
def test_the_reader_of_models_takes_no_harm(tmp_path_factory, data: st.DataObject) -> None:
    """Tests that a damaged file is a model or an error of ours, whatever was done to it."""
    text = backtracking.Model(grow_trees(1, 2, 2), 1, 0, {}).text()
    content = json.loads(text)
    if data.draw(st.booleans()):
        where = data.draw(st.sampled_from([content, content["forest"]]))
        odd = st.sampled_from([None, [], [1], [[1]], {}, "1", -1, 10**400, 1e300, True, [True]])
        where[data.draw(st.sampled_from(sorted(where)))] = data.draw(odd)
        text = json.dumps(content)
    else:
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 9)))
        text = text[:begin] + data.draw(st.text(max_size=4)) + text[end:]
    file = tmp_path_factory.getbasetemp() / "damaged.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        read = backtracking.read(file)
    except FormatError:
        return
    assert read.native is not None


def test_files_that_are_no_models(model: backtracking.Model, tmp_path: Path) -> None:
    """Tests the messages for a missing file, for other files, and for other versions."""
    with pytest.raises(FormatError, match="cannot be read: no such file"):
        backtracking.read(tmp_path / "none.json")
    file = tmp_path / "model.json"
    for text, message in (
        ("\x93NUMPY", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a model"),
        ('{"format": "memplan plan"}', "not a model"),
        (model.text().replace('"version": 2', '"version": 3'), "version 3"),
        (model.text().replace('"size"', '"weight"'), "other features"),
        (model.text().replace('"discount": 0.25', '"discount": 2'), "discount"),
        (model.text().replace('"forest"', '"trees"'), "no forest"),
    ):
        file.write_text(text)
        with pytest.raises(FormatError, match=message):
            backtracking.read(file)


def test_training_repeats(samples: Samples) -> None:
    """Tests that the same samples and seed give the same file."""
    pytest.importorskip("lightgbm")
    first, second = (learn.train(samples, trees=5, seed=3) for _ in range(2))
    assert first.text() == second.text()
    assert first.native is not None


def test_training_needs_samples_and_the_extra(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that both are named where they are missing."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"memplan-lab\[learn\]"):
        learn.train(samples)
    monkeypatch.undo()
    pytest.importorskip("lightgbm")
    with pytest.raises(MemplanError, match="no samples"):
        learn.train(learn.join([]))


# Searches


@pytest.mark.parametrize("seed", range(4))
def test_a_search_with_a_model_is_legal_and_repeats(seed: int, model: backtracking.Model) -> None:
    """Tests plans with a second search, of the shipped model, and of one that knows nothing."""
    problem = generators.synthetic(24, seed)
    roomy = problem.with_capacity(problem.capacity * 105 // 100)
    for learned in (True, "published", model):
        plans = [mp.solve(roomy, "telamalloc", nodes=40_000, learned=learned) for _ in range(2)]
        assert plans[0].stats == {**plans[1].stats, "seconds": plans[0].stats["seconds"]}
        assert (plans[0].offsets is None) == (plans[1].offsets is None)
        if plans[0].offsets is not None:
            mp.verify(roomy, plans[0])
            assert plans[0].offsets.tolist() == plans[1].offsets.tolist()


def test_the_model_is_an_option(five: mp.Problem) -> None:
    """Tests on, off, published and anything else."""
    for value in ("on", "off", "published"):
        assert mp.solve(five, f"telamalloc:learned={value}").offsets is not None
    with pytest.raises(MemplanError, match="on, off, published"):
        mp.solve(five, "telamalloc", learned="yes")
    assert mp.solve(five, "telamalloc:learned=published,model=off").offsets is not None
    with pytest.raises(MemplanError, match="model of telamalloc must be what"):
        mp.solve(five, "telamalloc:learned=published,model=on")


@pytest.mark.parametrize("count", [200, 4000])
def test_what_the_rules_solve_soon_is_solved_as_without_the_second_search(count: int) -> None:
    """Tests that easy problems take the same steps, also where one pass takes thousands."""
    problem = generators.nn_like(count, 0)
    roomy = problem.with_capacity(mp.lower_bound(problem) * 11 // 10)
    plans = [mp.solve(roomy, "telamalloc", learned=learned) for learned in (False, True)]
    first, second = plans
    assert first.offsets is not None
    assert second.offsets is not None
    assert first.offsets.tolist() == second.offsets.tolist()
    nodes = first.stats["nodes"]
    assert isinstance(nodes, int)
    assert nodes == second.stats["nodes"]
    assert nodes <= count * 5 // 4


def test_the_second_search_solves_what_the_rules_do_not() -> None:
    """Tests problems that the rules leave open, and that none is lost."""
    won = 0
    for seed in range(8):
        problem = generators.synthetic(40, seed)  # its capacity is the least
        plans = [
            mp.solve(problem, "telamalloc", nodes=20_000, learned=learned)
            for learned in (False, True)
        ]
        won += plans[0].offsets is None and plans[1].offsets is not None
        nodes = plans[0].stats["nodes"]
        assert isinstance(nodes, int)
        if plans[0].offsets is not None and nodes <= 10_000:
            assert plans[1].offsets is not None
        if plans[1].offsets is not None:
            mp.verify(problem, plans[1])
    assert won >= 3


# Evaluation


def test_evaluation_compares_the_same_problem() -> None:
    """Tests the rows of two problems."""
    instances = learn.of_seeds("training-like", [0], [100])
    shipped = backtracking.read(backtracking.SHIPPED)
    rows = learn.evaluate(instances, shipped, steps=2_000)
    assert [row.instance for row in rows] == [f"training-like-100-0@{p}%" for p in (100, 101, 102)]
    assert all(run.solved or run.backtracks >= 2_000 for r in rows for run in (r.plain, r.learned))


def test_the_halves_of_the_corpus_share_no_network() -> None:
    """Tests that both together are a sample, and that all problems of a network are in one half."""
    pytest.importorskip("pyarrow")
    halves = [list(learn.of_corpus(half, 60, [101])) for half in learn.HALVES]
    names = [{each.name for each in half} for half in halves]
    assert all(names)
    assert not names[0] & names[1]
    networks = {
        record.name: record.provenance.get("model", record.name) for record in bench.corpus()
    }
    found = [{networks[name.removesuffix("@101%")] for name in half} for half in names]
    assert not found[0] & found[1]
    first = halves[0][0].make()
    assert first.capacity is not None
    with pytest.raises(MemplanError, match="first, second"):
        next(learn.of_corpus("third"))


def test_merits_count_what_they_say() -> None:
    """Tests a summary by hand."""
    rows = [
        Row("a", "x", outcome(False, 5_000), outcome(True, 100)),
        Row("b", "x", outcome(True, 3_000), outcome(False, 5_000)),
        Row("c", "x", outcome(True, 2_000), outcome(True, 1_000)),
        Row("d", "y", outcome(True, 7, 0.5), replace(outcome(True, 7, 0.6), steps=3)),
    ]
    x, y, both = merit.judge(rows, 1_000)
    assert (x.hard, x.easy, x.unsolved, x.won, x.lost) == (3, 0, 1, 1, 1)
    assert (x.plain, x.learned, x.cpu) == (3_000, 1_000, None)
    assert (y.hard, y.easy, y.easy_lost, y.cpu, y.worst_cpu) == (0, 1, 0, 1.2, 1.2)
    assert (x.easy_other, y.easy_other) == (0, 1)
    assert (both.family, both.hard, both.easy) == ("all", 3, 1)
    assert "| x | 3 |" in merit.table(rows, 1_000).markdown()
