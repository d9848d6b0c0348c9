"""A process that serves many is prepared for it."""

import subprocess
import sys

PREPARED = """
import gc, resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
from foundation.long_lived import prepare
prepare()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256, gc.get_freeze_count() > 0)
"""


def test_it_may_open_more_files_and_its_program_is_no_garbage():
    said = subprocess.run([sys.executable, "-c", PREPARED], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["True", "True"]
