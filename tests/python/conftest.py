"""Settings of all tests: hypothesis draws the same examples every time, takes as long as it takes and keeps no files."""

import hypothesis

hypothesis.settings.register_profile(
    "suite",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")
