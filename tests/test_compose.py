"""The cluster of docker-compose.yml fits together: what can be checked without Docker."""

import json
import re
import shlex
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from paimon_command.commands.serving import serve
from paimon_core.catalog.catalog_options import check_catalog_options
from paimon_core.catalog.jdbc.urls import database_address
from paimon_core.engine import is_catalog_option
from paimon_spark.server import Address

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(re.sub(r"\$\{\w+:-([\w-]+)\}", r"\1", TEXT))
"""The file, with the defaults of its variables."""
SERVICES = COMPOSE["services"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PORTS = {"master": {7077, 8080}, "serve": {15002, 10000}, "minio": {9000, 9001}, "postgres": {5432}, "notebook": {8888}}
"""The ports on which the programs of the services listen; the tests compare them with their commands."""


def dependencies(service):
    """The services that a service waits for, with the condition."""
    given = SERVICES[service].get("depends_on", [])
    if isinstance(given, list):
        return dict.fromkeys(given, "service_started")
    return {name: entry["condition"] for name, entry in given.items()}


def script(service):
    """The text that a service gives to a shell; `None` if it runs a program."""
    command = SERVICES[service].get("command", "")
    if SERVICES[service].get("entrypoint") == ["/bin/sh", "-c"]:
        (text,) = command
    elif command.startswith("bash -c "):
        _, _, text = shlex.split(command)
    else:
        return None
    return text.replace("$$", "$")


def arguments(service, program):
    """The arguments of a program that a service runs."""
    before, found, after = (script(service) or SERVICES[service]["command"]).partition(program)
    assert found, f"{service} does not run {program}, but {before}"
    return shlex.split(after)


def settings_of_serve(storage_file):
    words = arguments("serve", "paimon-spark serve")
    assert words[words.index("--storage-file") + 1] == "/catalog.json"
    words[words.index("/catalog.json")] = str(storage_file)
    return serve.make_context("serve", words).params


def test_services_are_those_that_guide_promises():
    assert set(SERVICES) == {"master", "worker-1", "worker-2", "serve", "minio", "bucket", "postgres", "notebook"}
    assert all("image" in service for service in SERVICES.values())
    for name in ("worker-1", "worker-2", "serve", "notebook"):
        assert "/dist/pyspark_paimon-*.whl" in script(name), f"{name} does not install the wheel"


def test_services_start_in_an_order():
    order = list(TopologicalSorter({name: dependencies(name) for name in SERVICES}).static_order())
    assert set(order) == set(SERVICES)
    for name in SERVICES:
        for other, condition in dependencies(name).items():
            if condition == "service_healthy":
                assert SERVICES[other]["healthcheck"]["test"], other
            elif condition == "service_completed_successfully":
                assert "exec" not in script(other), f"{other} does not end"
            else:
                assert condition == "service_started"


def test_arguments_of_serve_are_accepted(tmp_path):
    (tmp_path / "catalog.json").write_text(COMPOSE["configs"]["catalog"]["content"])
    given = settings_of_serve(tmp_path / "catalog.json")
    assert given["warehouse"] == "s3://warehouse"
    assert given["master"] == "spark://master:7077"
    assert {int(given[name].rpartition(":")[2]) for name in ("connect", "thrift")} == PORTS["serve"]
    assert given["insecure"]  # without it, serve refuses addresses that other machines reach
    assert not {Address.parse(given[name]).is_loopback() for name in ("connect", "thrift")} - {False}


@pytest.mark.parametrize("service", ["master", "worker-1"])
def test_classes_of_spark_exist(service):
    name, *words = arguments(service, "spark-class ")
    (jar,) = (Path(pyspark.__path__[0]) / "jars").glob("spark-core_*.jar")
    assert f"{name.replace('.', '/')}.class" in ZipFile(jar).namelist()
    assert words[-1] == ("master" if service == "master" else "spark://master:7077")


@pytest.mark.parametrize("service", [name for name in SERVICES if script(name)])
def test_scripts_are_valid_and_their_variables_exist(service):
    text = script(service)
    done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used = set(re.findall(r"\$\{?(\w+)", text))
    assert used
    assert used <= set(SERVICES[service]["environment"])
    command = SERVICES[service]["command"]
    assert not re.search(r"(?<!\$)\$(?!\$)", command if isinstance(command, str) else command[0])


def test_addresses_name_services_and_their_ports():
    addresses = re.findall(r"(?:https?|spark|sc|jdbc:\w+)://([\w.-]+):(\d+)", TEXT.partition("name: paimon")[2])
    assert {host for host, _ in addresses} == {"master", "minio", "postgres", "serve"}
    for host, port in addresses:
        assert int(port) in PORTS[host], f"{host}:{port}"
    console = arguments("minio", "server")[-1]
    assert int(console.rpartition(":")[2]) in PORTS["minio"]


def test_ports_that_comment_names_are_published():
    published = {}
    for name, service in SERVICES.items():
        for mapping in service.get("ports", []):
            *_, outside, inside = mapping.split(":")
            assert int(inside) in PORTS[name], f"{name} does not listen on {inside}"
            published[int(outside)] = name
    head = TEXT.partition("name: paimon")[0]
    named = {int(port) for port in re.findall(r"//localhost:(\d+)", head)}
    assert named == {8888, 8080, 9001, 15002, 10000}
    assert named <= set(published)
    open_to_all = [mapping for mapping in SERVICES["serve"]["ports"] if not mapping.startswith("127.0.0.1:")]
    assert not open_to_all, "serve has no password"


def test_volumes_and_configs_exist():
    named = set()
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if not source.startswith("."):
                named.add(source)
            elif source != "./dist":  # which the first command of the comment creates
                assert (ROOT / source).exists(), f"{name}: {volume}"
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"]
    assert named == set(COMPOSE["volumes"])
    assert "pip wheel --no-deps -w dist ." in TEXT


def test_health_check_asks_for_user_of_database():
    postgres = SERVICES["postgres"]
    kind, program, *words = postgres["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "pg_isready")
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given == {"--host": "localhost", "--username": postgres["environment"]["POSTGRES_USER"]}


def test_keys_of_store_are_the_same_everywhere():
    keys = [SERVICES["serve"]["environment"][f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    for service in ("worker-1", "worker-2", "notebook"):
        assert [
            SERVICES[service]["environment"][f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
        ] == keys
    assert list(SERVICES["minio"]["environment"].values()) == keys
    assert list(SERVICES["bucket"]["environment"].values()) == keys
    bucket = script("bucket").rpartition("store/")[2]
    assert arguments("serve", "--warehouse")[0] == f"s3://{bucket}"


def test_catalog_is_in_database_of_file():
    options = json.loads(COMPOSE["configs"]["catalog"]["content"])
    assert all(map(is_catalog_option, options))
    check_catalog_options(options, "jdbc")
    address, given = database_address(options["uri"], options).parts, SERVICES["postgres"]["environment"]
    assert (address["host"], address["port"]) == ("postgres", 5432)
    named = (address["username"], address["password"], address["database"])
    assert named == (given["POSTGRES_USER"], given["POSTGRES_PASSWORD"], given["POSTGRES_DB"])
    assert SERVICES["serve"]["configs"] == [{"source": "catalog", "target": "/catalog.json"}]
    assert dependencies("serve")["postgres"] == "service_healthy"


def requirements(lines):
    """Requirements as pip understands them, without what stands around the words."""
    return {str(Requirement(line)) for line in lines}


def test_dependencies_of_project_are_installed():
    extras = PROJECT["optional-dependencies"]
    of_the_wheel = [line for line in PROJECT["dependencies"] if Requirement(line).name != "pyspark"]
    installed = COMPOSE["x-install"]
    assert requirements(installed["PACKAGES"].split()) == requirements([*of_the_wheel, *extras["s3"], *extras["jdbc"]])
    assert requirements(installed["CONNECT_PACKAGES"].split()) == requirements(extras["connect"])


def test_image_fits_project():
    """Images of Spark 4.1 bring Python 3.10: the project and every dependency must install there."""
    versions = {service["image"].partition(":")[2] for service in SERVICES.values() if "spark" in service["image"]}
    assert {version.rpartition(".")[0] for version in versions} == {"4.1"}
    assert "3.10" in SpecifierSet(PROJECT["requires-python"])
    required = next(Requirement(line) for line in PROJECT["dependencies"] if Requirement(line).name == "pyspark")
    assert all(version.partition("-")[0] in required.specifier for version in versions)
    client = re.search(r" pyspark==([\d.]+)", script("notebook"))  # PaimonTable needs more than pyspark-client
    assert client
    assert {version.partition("-")[0] for version in versions} == {client[1]}


def test_py4j_of_serve_is_that_of_spark():
    (archive,) = (Path(pyspark.__path__[0]) / "python" / "lib").glob("py4j-*-src.zip")
    paths = SERVICES["serve"]["environment"]["PYTHONPATH"].split(":")
    assert paths == ["/opt/spark/python", f"/opt/spark/python/lib/{archive.name}"]
