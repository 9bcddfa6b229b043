"""A host that reads nothing for 60 s counts as gone: the helper and its engine end. The test takes these 60 s."""

import time

import wire
from wire import HelperTest, script

STALL_S = 60
LATE_S = 5


class DeafHost(HelperTest):
    def test_it_is_left(self):
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        engine = helper.engine_pid()
        helper.reading.clear()
        helper.send("health.ping", None, 1)  # the reader waits inside a read; this ping lets it return
        self.create(helper, script({"repeat": ["x" * 1000, 4000]}))
        before = time.monotonic()
        wire.wait_idle(helper.pid, engine)
        held_up = time.monotonic()
        self.assertEqual(helper.wait_exit(), 0)
        self.assertGreater(time.monotonic() - before, STALL_S - 1)
        self.assert_soon(time.monotonic() - held_up, STALL_S + LATE_S)
        self.assertFalse(wire.alive(engine))
        helper.reading.set()


if __name__ == "__main__":
    wire.main()
