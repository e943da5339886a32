"""One Hypothesis profile for the folder: new examples on every run, and no deadline for slow machines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "domain",
    deadline=None,
    max_examples=40,
    derandomize=False,
    # Entries made of many hostile texts are slow to draw on a small machine, and no less worth drawing.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("domain")
