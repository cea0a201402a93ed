"""Tools for analysts of near-duplicates: a report, samples to label, and calibration.

Needs the extra ``lab`` of the package. The command ``neardup`` offers the same.
"""

from .._html import missing

try:
    from ._calibrate import Calibration, Method, calibrate
    from ._report import report
    from ._sample import sample
except ImportError as error:
    raise missing(error) from error

__all__ = ["Calibration", "Method", "calibrate", "report", "sample"]
