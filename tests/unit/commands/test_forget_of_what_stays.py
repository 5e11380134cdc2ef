"""What `forget` says it has removed is gone."""

from hivekeeper import names
from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_forget_tells_the_truth():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.kill_before(["hold.rename "], desk.compact)
    beside = names.parent(desk.control.top)
    (left,) = [e.path for e in world.files.look_hidden([beside])[beside].entries if names.NEW.fullmatch(e.name)]
    world.files.write_new(f"{left}/x", "x")
    world.files.namespace.advance(2 * 86_400_000)
    result = desk.forget()
    assert result.tables[0].forgotten is None or world.files.stat(left) is None
