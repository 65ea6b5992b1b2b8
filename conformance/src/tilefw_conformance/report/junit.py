"""junit.xml: a suite for each target, a test for each case, so that any CI shows a run as it shows its own tests.

JUnit knows failures, errors and skips only. What the target rightly does not do is skipped with its reason, never passed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.records import Record
from tilefw_conformance.report.wording import why

_ELEMENT = {
    "fail": "failure", "xpass": "failure", "overclaimed": "failure", "error": "error", "timeout": "error",
    "xfail": "skipped", "unsupported": "skipped", "over-capacity": "skipped",
}
# XML 1.0 §2.2: no control characters but tab, line feed and carriage return, no surrogates, neither U+FFFE nor U+FFFF.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """The whole report as JUnit's XML."""
    root = ElementTree.Element("testsuites", name="tilefw conformance")
    for target in report.targets:
        root.append(_suite(report, target))
    ElementTree.indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, target: str) -> ElementTree.Element:
    results = report.of(target)
    counted = Counter(_ELEMENT.get(one["outcome"]) for one in results)
    suite = ElementTree.Element(
        "testsuite", name=f"tilefw.{target}", tests=str(len(results)), failures=str(counted["failure"]),
        errors=str(counted["error"]), skipped=str(counted["skipped"]), time=f"{sum(one['seconds'] for one in results):.3f}",
        timestamp=report.header["started"].partition("+")[0],
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = report.facts(target)
    shown = {name: report.header[name] for name in ("edition", "level", "stage", "seed")}
    shown |= {"executor": facts["executor"], "digest": report.footer["digest"], **report.header["versions"]}
    for name, value in shown.items():
        ElementTree.SubElement(properties, "property", name=name, value=_clean(str(value)))
    suite.extend(_test(report, one) for one in results)
    return suite


def _test(report: Report, one: Record) -> ElementTree.Element:
    group = report.cases[one["case"]]["group"]
    test = ElementTree.Element(
        "testcase", classname=f"tilefw.{one['target']}.{group}", name=_clean(one["case"]), time=f"{one['seconds']:.3f}"
    )
    element = _ELEMENT.get(one["outcome"])
    if element is not None:
        cause = ElementTree.SubElement(test, element, message=_clean(f"{one['outcome']}: {why(one)}"), type=one["outcome"])
        if element != "skipped":
            said = one["error"]["message"] + "\n" if one["error"] else ""
            cause.text = _clean(f"{said}run it again: {one['reproduce']}")
    return test


def _clean(text: str) -> str:
    return _NO_XML.sub("�", text)
