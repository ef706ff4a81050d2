"""Medians, percentiles and ratios of the few values that some rounds gave."""


def percentile(values, percent):
    """The value at this percentage, between neighbours in proportion; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    at = (len(ordered) - 1) * percent / 100
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def spread(values):
    """Median, p10 and p90 of these values; three times None of nothing."""
    known = [value for value in values if value is not None]
    return tuple(percentile(known, percent) for percent in (50, 10, 90))


def ratios(over, under):
    """The ratio of each round that has both values."""
    return [above / below for above, below in zip(over, under)
            if above is not None and below is not None and below > 0]


def more_is_better(unit):
    """Is this a rate, rather than a cost?"""
    return unit.endswith("/s")


def advantages(ours, theirs, unit):
    """By round, how many times as good the one is as the other: above 1 is better."""
    return ratios(ours, theirs) if more_is_better(unit) else ratios(theirs, ours)
