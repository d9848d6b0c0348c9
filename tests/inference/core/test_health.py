"""When a replica is trusted, left out, tried again and trusted little by little. All times are told."""

import pytest

from inference.health import BreakerTimes, Health, HealthState

TIMES = BreakerTimes(
    cool_down=2, longest_cool_down=16, forgiving=100, slow_start=30, blip=1, pause=0.5, longest_pause=2
)


def healthy(now=0.0):
    health = Health(TIMES)
    health.admit(now)
    return health


def ejected(now=0.0, *, needs_trial=True):
    health = healthy(now)
    health.eject("it fails", now, needs_trial=needs_trial)
    return health


def cool_down_of(health, now):
    """Return after how many half seconds a trial is due."""
    return next(t / 2 for t in range(1000) if health.is_trial_due(now + t / 2, is_needed=False))


def test_a_replica_is_unknown_until_its_first_good_probe_and_then_has_all_its_permits():
    health = Health(TIMES)
    assert (health.state(0), health.is_available, health.permits(32, 0)) == (HealthState.UNKNOWN, False, 0)
    health.admit(1)
    assert (health.state(1), health.is_available, health.permits(32, 1)) == (HealthState.HEALTHY, True, 32)


def test_three_answers_that_fail_in_a_row_are_too_many():
    health = healthy()
    assert [health.fail(answer) for answer in (1, 2, 3)] == [False, False, True]


def test_one_answer_that_goes_well_between_failures_clears_them():
    health = healthy()
    health.fail(1)
    health.fail(2)
    health.succeed()
    assert [health.fail(answer) for answer in (3, 4)] == [False, False]


def test_one_answer_that_fails_again_and_again_counts_once():
    health = healthy()
    assert not any(health.fail(7) for _ in range(10))


def test_an_ejected_replica_has_no_permit_and_is_not_admitted_by_a_probe():
    health = ejected()
    health.admit(100)
    assert (health.state(100), health.permits(32, 100), health.why) == (HealthState.EJECTED, 0, "it fails")


def test_a_replica_that_was_only_out_of_reach_is_admitted_by_the_next_good_probe():
    health = ejected(needs_trial=False)
    assert not health.is_trial_due(1000, is_needed=True)
    health.admit(1.5)
    assert health.state(1.5) is HealthState.SLOW_START


def test_a_replica_that_was_out_of_reach_for_a_moment_only_does_not_start_slowly():
    health = ejected(needs_trial=False)
    health.admit(0.9)
    assert health.state(0.9) is HealthState.HEALTHY


def test_a_moment_out_of_reach_does_not_shorten_a_slow_start():
    health = ejected(needs_trial=False)
    health.admit(1.5)
    health.eject("It cannot be reached.", 2, needs_trial=False)
    health.admit(2.1)
    assert health.state(2.1) is HealthState.SLOW_START


def test_a_good_trial_admits_slowly():
    health = ejected()
    assert not health.is_trial_due(1.9, is_needed=False)
    assert health.is_trial_due(2, is_needed=False)
    health.try_out(2)
    assert (health.state(2), health.is_available) == (HealthState.HALF_OPEN, False)
    assert not health.is_trial_due(60, is_needed=True)
    health.admit(3)
    assert (health.state(3), health.why) == (HealthState.SLOW_START, "")
    assert [health.permits(31, 3 + seconds) for seconds in (0, 1, 15, 29, 30, 500)] == [1, 2, 16, 30, 31, 31]
    assert health.state(33) is HealthState.HEALTHY


def test_a_replica_with_one_permit_has_it_from_the_start_of_a_slow_start():
    health = ejected(needs_trial=False)
    health.admit(1)
    assert health.permits(1, 1) == 1


def test_each_trial_that_fails_doubles_the_cool_down_up_to_a_limit():
    health, waits = ejected(), []
    for now in range(0, 500, 100):
        waits.append(cool_down_of(health, now))
        health.try_out(now)
        health.eject("it still fails", now + 100, needs_trial=True)
    assert waits == [2, 4, 8, 16, 16]


def test_one_that_flaps_waits_longer_each_time():
    health, waits, now = healthy(), [], 0.0
    for _ in range(4):
        health.eject("it fails", now, needs_trial=True)
        waits.append(cool_down_of(health, now))
        now += waits[-1]
        health.try_out(now)
        health.admit(now)
        now += 35
    assert waits == [2, 4, 8, 16]


def test_one_that_was_well_for_long_is_forgiven():
    health = ejected()
    health.try_out(2)
    health.admit(2)
    assert health.state(200) is HealthState.HEALTHY
    health.eject("it fails", 200, needs_trial=True)
    assert cool_down_of(health, 200) == 2


def test_one_that_is_needed_is_tried_soon_however_often_it_failed():
    health = ejected()
    for now in (10, 20, 30):
        health.try_out(now)
        health.eject("it still fails", now, needs_trial=True)
    assert not health.is_trial_due(31, is_needed=True)
    assert health.is_trial_due(32, is_needed=True)
    assert not health.is_trial_due(32, is_needed=False)


def test_streams_that_fail_because_it_was_ejected_do_not_lengthen_the_cool_down():
    health = ejected()
    health.eject("a stream of it was abandoned", 0.5, needs_trial=True)
    assert (health.why, cool_down_of(health, 0)) == ("it fails", 2)


def test_one_out_of_reach_that_turns_out_to_be_sick_must_be_tried_out():
    health = ejected(needs_trial=False)
    health.eject("it fails", 1, needs_trial=True)
    health.admit(1)
    assert (health.state(1), health.needs_trial) == (HealthState.EJECTED, True)


def test_a_full_server_is_left_alone_for_a_moment_that_grows_and_is_not_sick():
    health, pauses, now = healthy(), [], 0.0
    for _ in range(4):
        health.pause(now)
        pauses.append(next(t / 10 for t in range(100) if not health.is_paused(now + t / 10)))
        assert (health.permits(8, now), health.state(now)) == (0, HealthState.HEALTHY)
        now += pauses[-1]
    assert pauses == [0.5, 1, 2, 2]
    assert health.permits(8, now) == 8
    health.succeed()
    health.pause(now)
    assert not health.is_paused(now + 0.5)


def test_refusals_at_the_same_moment_are_one():
    health = healthy()
    for _ in range(10):
        health.pause(0.1)
    assert not health.is_paused(0.6)


@pytest.mark.parametrize("now", [0, 1000.5])
def test_a_repaired_replica_forgets_the_failures_from_before(now):
    health = healthy(now)
    health.fail(1)
    health.fail(2)
    health.eject("unreachable", now, needs_trial=False)
    health.admit(now + 1)
    assert not health.fail(3)
