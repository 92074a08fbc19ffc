"""Tests of the site of docs/ in a browser: it is read from a folder, without server and network."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from docs_site import Site, build

pytestmark = pytest.mark.deep


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return the site, built strictly."""
    return build(tmp_path_factory)


def test_the_site_is_searched_from_a_folder(site: Site, driver: Any) -> None:
    """Tests a search where workers may not start, and that nothing is asked of a network."""
    driver.get_log("browser"), driver.get_log("performance")  # of pages before this one
    driver.get((site.folder / "tutorials" / "pytorch-slab.html").as_uri())
    driver.find_element("css selector", "input[data-md-component=search-query]").click()
    driver.switch_to.active_element.send_keys("skyline")
    late = time.monotonic() + 60
    while not (links := driver.find_elements("css selector", ".md-search-result__link")):
        assert time.monotonic() < late, driver.get_log("browser")
        time.sleep(0.1)
    assert any("/telamalloc.html" in link.get_attribute("href") for link in links)
    assert driver.get_log("browser") == []
    told = [json.loads(each["message"])["message"] for each in driver.get_log("performance")]
    sent = [each["params"] for each in told if each["method"] == "Network.requestWillBeSent"]
    assert sent
    assert {each["request"]["url"].partition(":")[0] for each in sent} <= {"file", "data", "blob"}
