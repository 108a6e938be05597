//! Steps of the schedulers, counted for the tests that bound them.
//!
//! A step looks at the cells of one port, a row or a column of the matrix: O(R). Nothing is counted
//! outside of tests.

/// Counts `ports` more steps.
#[inline(always)]
pub(super) fn count(ports: usize) {
    #[cfg(test)]
    tests::add(ports as u64);
    #[cfg(not(test))]
    let _ = ports;
}

#[cfg(test)]
mod tests;
