"""Seal plum multiple dispatch under `jax.jit`: fast, and never a stale result."""

import wrapt as _wrapt

from plum_freeze._cache import Cache as Cache
from plum_freeze._errors import FreezeError as FreezeError
from plum_freeze._errors import InvalidationWarning as InvalidationWarning
from plum_freeze._errors import LateRegistrationError as LateRegistrationError
from plum_freeze._errors import LateRegistrationWarning as LateRegistrationWarning
from plum_freeze._freeze import freeze as freeze
from plum_freeze._freeze import is_frozen as is_frozen
from plum_freeze._freeze import thaw as thaw
from plum_freeze._freeze import thawed as thawed
from plum_freeze._install import install as install
from plum_freeze._install import registrations as registrations
from plum_freeze._marks import eager as eager
from plum_freeze._marks import traced as traced
from plum_freeze._record import Registration as Registration
from plum_freeze._report import Report as Report
from plum_freeze._report import report as report
from plum_freeze._session import ReplayError as ReplayError
from plum_freeze._watch import patch as _patch

# A decorator object that was made before the patches keeps plum's own way in.
_wrapt.register_post_import_hook(lambda _: _patch(), "plum")
