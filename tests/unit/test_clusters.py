"""The machines of a simulation: tables of a settings file, and pools of GPUs."""

from pathlib import Path

import pytest

from cloudwhale.model.node import NodeState
from cloudwhale.simulation.clusters import Cluster, cluster_from, openb_nodes, parsed_pool, pool
from cloudwhale.simulation.traces import TraceError
from cloudwhale.simulation.traces.named import clouds_of
from cloudwhale.spi.errors import SettingsError

NODE = '[[node]]\nname = "desk"\n'


def a_cluster(folder: Path, text: str) -> Cluster:
    (folder / "lab.toml").write_text(text)
    return cluster_from(folder / "lab.toml")


def test_nodes_are_tables_and_what_stands_beside_them_are_settings(tmp_path: Path) -> None:
    found = a_cluster(
        tmp_path,
        'shares = {nlp = 2.0}\n[[node]]\nname = "desk"\ndevices = ["2x RTX4090 24GB"]\ncpu = 16\n'
        'memory_gib = 64\nlabels = {rack = "a"}\n[[node]]\nname = "lab"\ncount = 2\n'
        'devices = ["A10G 24GB"]\n',
    )
    assert [node.id for node in found.nodes] == ["desk", "lab-0", "lab-1"]
    desk = found.nodes[0]
    assert desk.state is NodeState.READY and desk.facts.labels == {"rack": "a"}
    assert [(d.id, d.model, d.memory_gib) for d in desk.facts.devices] == [
        ("desk-0", "RTX4090", 24.0), ("desk-1", "RTX4090", 24.0)
    ]  # fmt: skip
    assert (desk.facts.cpu, desk.facts.memory_gib) == (16.0, 64.0)
    assert found.settings == {"shares": {"nlp": 2.0}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "describes no nodes"),
        ("node = 3\n", "node is no list of tables"),
        ("[[node]]\n", "in node 1, name must be up to 63 letters"),
        (NODE + "count = 0\n", "in node 1, count must be a whole number"),
        (NODE + "cpu = nan\n", "in node 1, cpu must be a number above 0"),
        (NODE + 'devices = ["many"]\n', "in node 1, 'many' describes no devices"),
        (NODE + 'devices = ["99999999x L4 24GB"]\n', "describes no devices"),
        (NODE + 'count = 20000\ndevices = ["8x L4 24GB"]\n', "more than 20,000 nodes or 100,000"),
        (NODE + "gpus = 3\n", "in node 1, gpus is no key of it"),
        (NODE + NODE, "two nodes are called desk"),
        ("node", "lab.toml"),
    ],
)
def test_a_wrong_cluster_is_named_with_its_remedy(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        a_cluster(tmp_path, text)
    assert says in raised.value.says and "lab.toml" in raised.value.says and raised.value.remedy


OFFER = '[[offer]]\nname = "l4"\n'


def test_offers_are_what_can_be_rented(tmp_path: Path) -> None:
    found = a_cluster(
        tmp_path,
        NODE + '[[offer]]\nname = "l4"\ndevices = ["2x L4 24GB"]\nusd_h = 1.4\ncount = 3\n'
        'market = "spot"\npreempted_per_h = 0.1\nnotice_s = 30\nboot_s = 90\n',
    )
    [cloud] = found.clouds
    [shelf] = cloud.shelves
    assert (shelf.offer.id, shelf.offer.market, shelf.capacity) == ("l4", "spot", 3)
    assert shelf.offer.price_usd_h == shelf.offer.cap_usd_h == 1_400_000
    assert (shelf.offer.boot_s, shelf.offer.notice_s, shelf.offer.hazard_per_h) == (90, 30, 0.1)
    assert [device.model for device in shelf.offer.facts.devices] == ["L4", "L4"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OFFER, "in offer 1, usd_h must be a price"),
        (OFFER + "usd_h = 0\n", "in offer 1, usd_h must be a price"),
        (OFFER + 'usd_h = 1\nmarket = "black"\n', "in offer 1, market must be"),
        (OFFER + "usd_h = 1\ncount = 0\n", "in offer 1, count must be"),
        (f"{OFFER}usd_h = 1\n{OFFER}usd_h = 2\n", "two offers are called l4"),
    ],
)
def test_a_wrong_offer_is_named_with_its_remedy(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        a_cluster(tmp_path, NODE + text)
    assert says in raised.value.says and raised.value.remedy


def test_the_cloud_of_papers_has_machines_of_four_sizes_at_one_price_a_gpu() -> None:
    [cloud] = clouds_of("burst")
    sizes = {len(shelf.offer.facts.devices): shelf.offer.price_usd_h for shelf in cloud.shelves}
    assert sizes == {1: 2_500_000, 2: 5_000_000, 4: 10_000_000, 8: 20_000_000}
    assert clouds_of("philly") == ()


def test_a_cluster_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        cluster_from(tmp_path / "none.toml")
    (tmp_path / "lab.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        cluster_from(tmp_path / "lab.toml")


def test_a_pool_is_one_node_or_several_of_equal_gpus() -> None:
    [one] = pool(parsed_pool("480"))
    assert len(one.facts.devices) == 480 and one.facts.cpu >= 480
    four = pool(parsed_pool("4x8"))
    assert [len(node.facts.devices) for node in four] == [8, 8, 8, 8]
    ids = [device.id for node in four for device in node.facts.devices]
    assert len(set(ids)) == 32


@pytest.mark.parametrize("text", ["", "0", "x8", "4x", "-3", "4x0", "1e9", "1000x1000", "eight"])
def test_a_word_that_is_no_number_of_gpus_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is no number of GPUs"):
        parsed_pool(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sn,gpu\n", "no column cpu_milli and no memory_mib and no model"),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn,64000,x,2,P100\n",
            "nodes.csv:2:9: memory_mib is 'x'",
        ),
    ],
)
def test_a_wrong_list_of_nodes_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "nodes.csv").write_text(text)
    with pytest.raises(TraceError) as raised:
        openb_nodes(tmp_path / "nodes.csv")
    assert says in str(raised.value)
