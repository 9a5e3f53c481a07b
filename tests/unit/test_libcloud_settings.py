"""A cloud that a driver of libcloud reaches, as its table says: read, refused, named, offered."""

import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from renting_libcloud import BIG, NOW, TABLE, DummyCloud, a_provider

from cloudwhale.control.abroad import must_reach
from cloudwhale.control.catalogue import catalogue
from cloudwhale.control.desk import providers
from cloudwhale.control.supply import supply
from cloudwhale.settings import load
from cloudwhale.spi.errors import Denied, SettingsError
from cloudwhale_providers.libcloud.driving import Driving, driver_class
from cloudwhale_providers.libcloud.launching import refuse, troubles
from cloudwhale_providers.libcloud.names import name_of, said_by, short
from cloudwhale_providers.libcloud.settings import LibcloudSettings, Size, read

TOML = """
mailbox = "s3://lab/whale"
[clouds.ovh]
through = "libcloud"
driver = "openstack"
credentials = {key = "OS_USERNAME", secret = "OS_PASSWORD"}
options = {ex_force_service_region = "GRA11"}
region = "GRA11"
image = "Ubuntu 24.04"
[[clouds.ovh.sizes]]
size = "l4-90"
usd_h = 1.0
cpu = 22
memory_gib = 86
disk_gib = 350
gpu = "L4"
gpus = 1
[clouds.fast]
through = "libcloud"
driver = "digitalocean"
credentials = {key = "DIGITALOCEAN_TOKEN"}
image = "ubuntu-24-04-x64"
off_is_free = true
[[clouds.fast.sizes]]
size = "gpu-h100x1-80gb"
usd_h = 3.39
cpu = 20
memory_gib = 220
disk_gib = 600
gpu = "H100-80GB"
gpus = 1
"""


def written(folder: Path, text: str = TOML) -> Any:
    """Return the settings of a file."""
    (folder / "cloudwhale.toml").write_text(text)
    return load(folder, {"CLOUDWHALE_HOME": str(folder / "home"), "HOME": str(folder)})


def test_several_clouds_are_reached_through_libcloud_and_offered_by_their_names(
    tmp_path: Path,
) -> None:
    settings = written(tmp_path)
    must_reach(settings)
    found = {one.id: one for one in supply(settings.but(accept_no_stop=True), NOW).offers}
    assert found.keys() == {
        "ovh/GRA11/l4-90/on-demand", "fast/here/gpu-h100x1-80gb/on-demand",
    }  # fmt: skip
    assert found["ovh/GRA11/l4-90/on-demand"].source == "cloudwhale.toml"
    made = providers(settings, "lab")
    assert made["ovh"].stops == frozenset()
    assert made["fast"].stops == frozenset({"self"})


def test_where_nobody_ends_a_machine_a_plan_rents_nothing_and_says_so(tmp_path: Path) -> None:
    found = supply(written(tmp_path), NOW)
    assert [one.provider for one in found.offers] == ["fast"]
    assert [one for one in found.notes if one.startswith("nothing is rented from ovh")]
    assert not [one for one in found.notes if one.startswith("nothing is rented from fast")]


def test_what_their_tables_say_stands_in_the_catalogue(tmp_path: Path) -> None:
    known = catalogue(written(tmp_path), NOW)
    assert {one.provider for one in known.offers} >= {"ovh", "fast"}
    assert not [note for note in known.notes if "ovh" in note]


def test_a_cloud_that_nobody_reaches_is_told_of_through(tmp_path: Path) -> None:
    settings = written(tmp_path, TOML.replace('through = "libcloud"\n', "", 1))
    with pytest.raises(SettingsError, match="says in `through` which of them"):
        must_reach(settings)
    settings = written(tmp_path, TOML.replace('"libcloud"', '"libclod"', 1))
    with pytest.raises(SettingsError, match="Did you mean through = 'libcloud'"):
        must_reach(settings)


def test_libcloud_is_imported_by_nobody_who_only_looks(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.toml").write_text(TOML)
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from cloudwhale.control.abroad import must_reach\n"
        "from cloudwhale.control.supply import supply\n"
        "from cloudwhale.settings import load\n"
        f"settings = load(Path({str(tmp_path)!r}), {{'CLOUDWHALE_HOME': {str(tmp_path)!r}}})\n"
        "must_reach(settings)\n"
        f"assert supply(settings, {NOW}).offers\n"
        "sys.exit(any(name.partition('.')[0] in ('libcloud', 'requests') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"drivr": "x"}, "unknown key 'drivr'\nDid you mean driver"),
        ({"driver": ""}, "lacks 'driver'"),
        ({"image": None}, "lacks 'image'"),
        ({"sizes": []}, "lacks 'sizes'"),
        ({"region": "a/b"}, "region must be a name"),
        ({"credentials": ["OS_USERNAME"]}, "credentials must be words of the driver"),
        ({"billing_step_s": 0}, "billing_step_s must be"),
        ({"off_is_free": "perhaps"}, "off_is_free must be true or false"),
        ({"sizes": [{**BIG, "usd_h": 0}]}, "size 1: usd_h must be a number of dollars above 0"),
        ({"sizes": [{**BIG, "price": 1}]}, "its size 1 has an unknown key 'price'"),
        ({"sizes": [{k: v for k, v in BIG.items() if k != "cpu"}]}, "size 1 lacks 'cpu'"),
        ({"sizes": [BIG, BIG]}, "the size Big stands there twice"),
        ({"sizes": [{**BIG, "gpu": "L4"}]}, "Say both `gpu` and `gpus`"),
        ({"sizes": [{**BIG, "gpu": "A100", "gpus": 1}]}, "A100-40GB or A100-80GB"),
        ({"sizes": [{**BIG, "gpu": "nonsense", "gpus": 1}]}, "unknown model 'nonsense'"),
        ({"sizes": [{**BIG, "at_most": 0}]}, "size 1: at_most must be"),
        ({"sizes": [{**BIG, "size": "a;b"}]}, "size 1: size must be the id or the name"),
        ({"sizes": "Big"}, "sizes must be tables"),
    ],
)  # fmt: skip
def test_a_table_that_is_wrong_is_told_of_by_its_key(said: Mapping[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as told:
        read({**TABLE, **said}, "ovh")
    assert "[clouds.ovh]" in str(told.value) and says in str(told.value)


def test_credentials_that_are_not_set_are_named(tmp_path: Path) -> None:
    provider = providers(written(tmp_path), "lab")["fast"]
    with pytest.raises(Denied, match=r"\$DIGITALOCEAN_TOKEN is not set"):
        provider.machines()


@given(
    installation=st.sampled_from(["0a1b2c3d4e5f", "lab", "My Laboratory", "z"]),
    request=st.text(min_size=1, max_size=40),
    node=st.text(st.characters(codec="utf-8"), min_size=1, max_size=9),
)
def test_a_name_says_what_it_was_made_of(installation: str, request: str, node: str) -> None:
    try:
        name = name_of(installation, request, node)
    except Denied:
        assert len(node.encode()) * 3 > 63 - len("cw-0a1b2c3d4e5f-01234567-")
        return
    said = said_by(name)
    assert said is not None and (said.installation, said.node) == (short(installation), node)
    assert len(name) <= 63 and name[-1] != "-"


@pytest.mark.parametrize("name", ["", "web-1", "cw-lab", "cw-lab-0123456g-n", "cw-lab-01234567-"])
def test_names_of_others_say_nothing(name: str) -> None:
    assert said_by(name) is None


def test_another_launch_of_the_same_node_is_called_otherwise() -> None:
    assert name_of("lab", "launch-1", "n") != name_of("lab", "launch-2", "n")


# -- doctor ----------------------------------------------------------------------------------


def rows(**said: Any) -> dict[str, tuple[str, str]]:
    """Return what doctor says of each thing, by its name."""
    found = a_provider(DummyCloud(), **said).check()
    assert [row.name for row in found if row.state != "ok" and not row.remedy] == []
    return {
        row.name.removeprefix("dummy "): (row.state, f"{row.says} {row.remedy}") for row in found
    }


def test_doctor_looks_at_all_that_a_table_names() -> None:
    found = rows()
    assert {name for name, (state, _) in found.items() if state == "ok"} == {
        "driver", "launches", "machines", "sizes", "image", "stop",
    }  # fmt: skip
    state, says = found["mailbox"]
    assert state == "warning" and "reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in says


@pytest.mark.parametrize(
    ("said", "row", "state", "says"),
    [
        ({"off_is_free": False}, "stop", "warning", "accept_no_stop = true"),
        ({"image": "BeOS"}, "image", "failed", "no 'BeOS'"),
        ({"sizes": [{**BIG, "size": "Huge"}]}, "sizes", "failed", "no 'Huge'"),
        ({"location": "Mars"}, "location", "failed", "no 'Mars'"),
        ({"machine_environment": []}, "mailbox", "failed", "given no key"),
        ({"machine_environment": ["NOBODY_SETS_IT"]}, "mailbox", "failed", "$NOBODY_SETS_IT"),
    ],
)  # fmt: skip
def test_doctor_says_what_is_wrong_and_how_to_mend_it(
    said: Mapping[str, Any], row: str, state: str, says: str
) -> None:
    found = rows(**said)[row]
    assert found[0] == state and says in found[1]


@pytest.mark.parametrize(
    ("driver", "says"),
    [
        ("scaleway", "could not boot themselves"),
        ("ovh", "could not boot themselves"),
        ("ec2", "names a machine with a second call"),
        ("azure_arm", "its create_node wants auth"),
        ("onapp", "does not take name, size and image"),
    ],
)  # fmt: skip
def test_a_driver_that_lacks_what_is_needed_is_refused_for_it(driver: str, says: str) -> None:
    driving, options = unmade(driver)
    found = [sentence for sentence, _ in troubles(driving, options)]
    assert any(says in one for one in found), found
    with pytest.raises(Denied):
        refuse(driving, options)


def unmade(driver: str) -> tuple[Driving, LibcloudSettings]:
    """Return a real driver that was given no credentials: only its signatures are looked at."""
    options = read({**TABLE, "driver": driver}, "x")
    made = driver_class(driver, "x")
    if driver == "openstack":  # its class stands for that of a version, which it makes
        made = import_module(made.__module__).OpenStack_2_NodeDriver
    return Driving("x", options, lambda: object.__new__(made)), options


@pytest.mark.parametrize(
    "driver", ["openstack", "rackspace", "cloudstack", "exoscale", "brightbox", "gce", "cloudscale"]
)
def test_a_driver_that_takes_user_data_is_not_refused(driver: str) -> None:
    assert troubles(*unmade(driver)) == []


def test_a_driver_or_a_library_that_is_not_there_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = TOML.replace('"digitalocean"', '"digitalsea"')
    (row, *_) = providers(written(tmp_path, text), "lab")["fast"].check()
    assert row.state == "failed" and "no compute driver 'digitalsea'" in row.says
    monkeypatch.setitem(sys.modules, "libcloud.compute.providers", None)
    (row, *_) = providers(written(tmp_path), "lab")["fast"].check()
    assert "pip install 'cloudwhale[libcloud]'" in row.remedy


def test_the_page_has_settings_that_hold(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "libcloud.md").read_text()
    settings = written(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    must_reach(settings)
    settings = settings.but(accept_no_stop=True)
    assert [one.id for one in supply(settings, NOW).offers] == ["ovh/GRA11/l4-90/on-demand"]
    for key in (*LibcloudSettings.model_fields, *Size.model_fields):
        assert f"`{key}`" in page, f"{key} is not explained"
