//! How finely threads are sampled.

use andweorc_profile::time::Nanos;

/// CPU time between two samples of a thread while targets are looked for: 1 kHz.
pub const COARSE: Nanos = Nanos::from_millis(1);

/// And while sampled targets are experimented on. On a virtual machine one sample takes some 25 us,
/// nearly all of it the timer's interrupt, so that still finer samples would cost more than they
/// tell.
pub const FINE: Nanos = Nanos::from_micros(250);
