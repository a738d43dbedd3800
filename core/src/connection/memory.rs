//! The memory of queues that were long for a while.

use std::collections::VecDeque;

/// The capacity that an empty queue keeps. If it is larger, more memory stays in use after many
/// requests at once; if it is smaller, fewer requests at once allocate again.
const KEPT: usize = 256;

/// Frees the memory of an empty queue above the capacity that is kept.
#[inline]
pub(super) fn free_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        queue.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_queue_frees_its_memory_once_it_is_empty_and_not_before() {
        let mut queue: VecDeque<_> = (0..10 * KEPT).collect();
        let long = queue.capacity();
        while queue.pop_front().is_some() {
            free_if_empty(&mut queue);
            assert_eq!(queue.capacity() < long, queue.is_empty(), "{} are left", queue.len());
        }
        assert!(queue.capacity() >= KEPT);
    }
}
