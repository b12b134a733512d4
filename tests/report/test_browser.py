"""The reports in a real browser, without a network: every chart is drawn."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import wavesim

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs a browser: one of {', '.join(BROWSERS)}")
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)}")
    return found


def opened(browser: str, page: Path, profile: Path) -> tuple[str, str]:
    """The document after its scripts ran, and what they said on the console."""
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",  # root has no sandbox; the page is our own
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            # Every host name fails, and so does every address: nothing listens on that port.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--proxy-server=127.0.0.1:9",
            "--enable-logging=stderr",
            "--virtual-time-budget=60000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and page.name in line]
    return done.stdout, "\n".join(said)


@pytest.mark.parametrize("which", ["run", "detailed", "analysis"])
def test_every_chart_is_drawn_without_a_network(
    which: str, browser: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    subject: wavesim.Run | wavesim.Analysis = request.getfixturevalue(which)
    page = tmp_path / "report.html"
    subject.report(page)
    charts = page.read_text(encoding="utf-8").count('<div class="chart" id="chart-')
    assert charts >= 4
    document, said = opened(browser, page, tmp_path / "profile")
    places = re.split(r'<div class="chart[^"]*" id="chart-\d+"', document)[1:]
    assert len(places) == charts
    for place in places:
        assert "<svg" in place, place[:500]
        assert re.search(r'class="mark-(rect|area|line)[^>]*>\s*<path', place), place[:2000]
    assert not re.search("error|refused|violat", said, re.IGNORECASE), said


def test_the_browser_forbids_a_report_to_load_anything(
    browser: str, run: wavesim.Run, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    run.report(page)
    text = page.read_text(encoding="utf-8")
    beacon = '<img src="http://192.0.2.1/beacon.png"></body>'
    page.write_text(text.replace("</body>", beacon), encoding="utf-8")
    _, said = opened(browser, page, tmp_path / "profile")
    assert "violates the following Content Security Policy directive" in said
