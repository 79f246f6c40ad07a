"""Settings of all tests: hypothesis draws the same examples every time, takes as long as it takes and keeps no files."""

import signal

import hypothesis

# A shell's background jobs, and what they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "suite",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")
