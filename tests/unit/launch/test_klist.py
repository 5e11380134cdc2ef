"""What klist prints about a ticket, and how long it lasts according to a fixed clock."""

from __future__ import annotations

from datetime import datetime

import pytest

from hivekeeper.launch.klist import read_ticket
from hivekeeper.plan.edge_node import TicketFacts

NOW = datetime(2026, 11, 21, 9, 30, 15).timestamp()

MIT = """Ticket cache: FILE:/tmp/krb5cc_1000
Default principal: etl@EXAMPLE.COM

Valid starting       Expires              Service principal
11/21/26 08:00:00  11/21/26 08:30:00  nfs/host@EXAMPLE.COM
{line}
"""

HEIMDAL = """Credentials cache: FILE:/tmp/krb5cc_1000
        Principal: etl@EXAMPLE.COM

  Issued                Expires               Principal
Nov 21 08:00:00 2026  Nov 21 18:00:00 2026  krbtgt/EXAMPLE.COM@EXAMPLE.COM
"""


def mit(starts, ends, renews=""):
    return MIT.format(line=f"{starts}  {ends}  krbtgt/EXAMPLE.COM@EXAMPLE.COM" + (f"\n\trenew until {renews}" if renews else ""))


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ("11/21/26 08:00:00", "11/21/26 19:29:59"),
        ("11/21/2026 08:00:00", "11/21/2026 19:29:59"),
        ("2026-11-21 08:00:00", "2026-11-21 19:29:59"),
    ],
)
def test_the_ticket_of_mit_kerberos_lasts_until_its_second_time(starts, ends):
    assert read_ticket(mit(starts, ends), NOW) == TicketFacts(seconds_left=35984)


def test_the_time_until_which_it_can_be_renewed_is_read_too():
    listed = mit("11/21/2026 08:00:00", "11/21/2026 19:29:59", "11/23/2026 09:30:00")
    assert read_ticket(listed, NOW) == TicketFacts(seconds_left=35984, seconds_renewable=172785)


def test_flags_after_the_time_do_no_harm():
    assert read_ticket(mit("11/21/26 08:00:00", "11/21/26 09:30:16", "11/21/26 09:30:17, Flags: FRIA"), NOW) == TicketFacts("", "", 1, 2)


def test_of_several_the_first_ticket_counts():
    listed = mit("11/21/26 08:00:00", "11/21/26 09:30:16") + "11/21/26 08:00:00  11/21/26 23:00:00  krbtgt/OTHER@EXAMPLE.COM\n"
    assert read_ticket(listed, NOW).seconds_left == 1


def test_heimdal_writes_other_times():
    assert read_ticket(HEIMDAL, NOW) == TicketFacts(seconds_left=30585)


def test_a_day_of_one_digit_is_padded():
    now = datetime(2026, 11, 5, 9, 0, 0).timestamp()
    line = "Nov  5 08:00:00 2026  Nov  5 18:00:00 2026  krbtgt/E@E"
    assert read_ticket(line, now).seconds_left == 32400


@pytest.mark.parametrize(
    "listed",
    [
        "",
        mit("11/21/26 08:00:00", "the day after"),
        mit("11/21/26 08:00:00", "99/99/26 08:00:00"),
        HEIMDAL.replace("Nov 21 18:00:00 2026", ">>>Expired<<<"),
    ],
)
def test_a_form_that_nobody_knows_tells_nothing(listed):
    assert read_ticket(listed, NOW) == TicketFacts()
