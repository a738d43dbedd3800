//! How tables grow that may have tens of thousands of entries.

/// Makes room for an entry at `index`, if there is none. The table grows by a quarter: with tens of
/// thousands of locks, doubling would leave much memory unused.
pub(super) fn make_room<T>(table: &mut Vec<T>, index: usize) {
    if table.capacity() <= index {
        table.reserve_exact(16 + table.len() / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_grows_seldom_and_leaves_at_most_a_quarter_unused() {
        let mut table = Vec::new();
        let mut growths = 0;
        for index in 0..50_000 {
            let before = table.capacity();
            make_room(&mut table, index);
            table.push(index);
            growths += usize::from(table.capacity() > before);
            assert!(table.capacity() <= 17 + index + index / 4, "{} at {index}", table.capacity());
        }
        assert!(growths < 50, "{growths}");
    }
}
