//! Servers and faults for the tests of Quorlock.
