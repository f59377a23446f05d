"""Swing a pendulum up and hold it there: seconds to run, the workhorse of the tests."""
