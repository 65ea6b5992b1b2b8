"""The conformance suite of tilefw: cases as data, run stage by stage on any registered target, judged by computed bounds."""

__version__ = "0.1.0"
EDITION = "0.1"
