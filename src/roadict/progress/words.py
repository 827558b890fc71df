"""Times in words."""


def duration(seconds: float) -> str:
    """Format a time.

    Examples
    --------
    >>> duration(0.25), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    >>> duration(9.97), duration(59.7)
    ('10 s', '1 min 0 s')
    """
    if round(seconds) < 60:
        return f"{seconds:.1f} s" if round(seconds, 1) < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def roughly(seconds: float) -> str:
    """Format a time that is an estimate, no finer than it is known.

    Examples
    --------
    >>> roughly(0.3), roughly(17.6), roughly(44), roughly(188), roughly(1234), roughly(40000), roughly(1e6)
    ('1 s', '18 s', '45 s', '3 min 10 s', '21 min', '11 h 10 min', '12 days')
    >>> roughly(60), roughly(3600)
    ('1 min', '1 h')
    """
    for least, step in ((48 * 3600, 86400), (3600, 600), (600, 60), (60, 10), (20, 5), (0, 1)):
        if seconds >= least:
            whole = max(1, round(seconds / step)) * step
            break
    if whole >= 48 * 3600:
        return f"{whole // 86400} days"
    if whole < 60:
        return f"{whole} s"
    text = duration(whole)
    return text.removesuffix(" 0 s").removesuffix(" 0 min")
