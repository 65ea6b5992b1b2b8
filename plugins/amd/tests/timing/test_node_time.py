"""The time of kernels that speak over links: what machine code sends and waits for, on the figures of the chip's system."""

from tilefw.testing.link_times import check_a_put, check_a_signalled_put

LATENCY, RATE = 0.7, 48e3  # microseconds, bytes per microsecond: link_latency and the rate of a link


def test_a_put_over_one_link_takes_its_latency_and_bytes():
    check_a_put("amd-cdna3", LATENCY, RATE)


def test_a_wait_ends_after_the_data_their_acknowledgement_and_the_signal():
    check_a_signalled_put("amd-cdna3", LATENCY, RATE)
